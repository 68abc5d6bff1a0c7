"""A query worker's own connection to Postgres: rows come as Arrow."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

import pyarrow as pa
from adbc_driver_manager import Error
from adbc_driver_postgresql import dbapi

from tristore.errors import Unavailable

_SESSION = (
    "SET default_transaction_read_only = on",
    "SET statement_timeout = '20s'",
    "SET application_name = 'tristore query'",
)


class LogRows:
    """Connects when first asked, and again after an outage."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._conn: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, sql: str, *parameters: Any) -> pa.Table:
        batches = list(self.batches(sql, *parameters))
        return pa.Table.from_batches(batches[1:], batches[0].schema)

    def batches(self, sql: str, *parameters: Any) -> Iterator[pa.RecordBatch]:
        """First an empty batch that tells the schema. One who stops early ends the connection:
        what Postgres has still to send cannot be called back."""
        whole = False
        try:
            with self._cursor(sql, parameters) as cursor:
                reader = cursor.fetch_record_batch()
                yield pa.RecordBatch.from_pylist([], schema=reader.schema)
                yield from reader
            whole = True
        except Error as error:
            raise Unavailable("the database is away; try again") from error
        finally:
            if not whole:
                self.close()

    def _cursor(self, sql: str, parameters: tuple[Any, ...]) -> Any:
        """Tried on a new connection when the one at hand turns out to be dead."""
        if self._conn is not None:
            with suppress(Error):
                return self._executed(sql, parameters)
            self.close()
        self._conn = dbapi.connect(self._url, autocommit=True)
        with self._conn.cursor() as cursor:
            for statement in _SESSION:
                cursor.execute(statement)
        return self._executed(sql, parameters)

    def _executed(self, sql: str, parameters: tuple[Any, ...]) -> Any:
        cursor = self._conn.cursor()
        cursor.execute(sql, parameters or None)
        return cursor

    def close(self) -> None:
        if self._conn is not None:
            with suppress(Error):
                self._conn.close()
            self._conn = None
