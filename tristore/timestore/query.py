"""Runs one query in a worker: pins the tables, adds their tails, shuts every other way, answers."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from tristore.errors import (
    InvalidRequest,
    SqlForbidden,
    TableDamaged,
    TooBroad,
    TristoreError,
    Unavailable,
)
from tristore.timestore import guard
from tristore.timestore.answer import Rows, encode
from tristore.timestore.filling import TOO_MANY
from tristore.timestore.integrity import damaged
from tristore.timestore.offer import Offer, Offers
from tristore.timestore.requests import Query, Source
from tristore.timestore.views import texts

_BATCH_ROWS = 10_000
_SETTINGS = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": "2",
    "temp_directory": "",
}


# What is said of a file that is no whole Parquet, where its name is not.
_UNREADABLE = re.compile(r"parquet|snappy|zstd|thrift|TProtocol|decompress", re.IGNORECASE)


class OutOfMemory(InvalidRequest):
    """The allocators keep much of what they took, and the next query would pay for it: the worker
    is spent."""


@dataclass(frozen=True, slots=True)
class Answered:
    body: bytes
    meta: dict[str, Any]


class Engine:
    """A user's statement has an instance of its own, which can open the files of its tables and
    nothing else; it is made before the query comes and closed after it was answered, which takes
    20 ms. Statements made here share one that can open whatever lies among the tables."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._spare: duckdb.DuckDBPyConnection | None = None
        self._shared: duckdb.DuckDBPyConnection | None = None
        self._used: duckdb.DuckDBPyConnection | None = None

    def prepare(self) -> None:
        self._drop_used()
        if self._spare is None:
            self._spare = _connect()

    def run(self, query: Query) -> Answered:
        try:
            return self._run(query)
        except TableDamaged:
            # A table may have been made anew, or vacuumed, since it was last looked at.
            for source in query.sources:
                self._offers.forget(source)
            return self._run(query)

    def _run(self, query: Query) -> Answered:
        self._drop_used()
        try:
            return self._answered(query)
        except TristoreError:
            # An instance in which something went wrong may answer no more.
            self._shared = None
            raise

    def _answered(self, query: Query) -> Answered:
        with _explained(query, self._offers.root.uri) as told:
            conn = self._used = self._own(query) if query.foreign else self._cursor(query)
            sources = _named(conn, query) if query.foreign else query.sources
            offer = self._offers.make(conn, sources)
            told(offer)
            if query.foreign:
                _shut(conn, "allowed_paths", offer.files)
            return _answer(conn, query, offer.meta)

    def _own(self, query: Query) -> duckdb.DuckDBPyConnection:
        conn, self._spare = self._spare or _connect(), None
        _bound(conn, query)
        return conn

    def _cursor(self, query: Query) -> duckdb.DuckDBPyConnection:
        if self._shared is None:
            self._shared = _connect()
            _bound(self._shared, query)
            root = self._offers.root
            _shut(self._shared, "allowed_directories", [root.file("")] if root.local else [])
        return self._shared.cursor()

    def _drop_used(self) -> None:
        if self._used is not None:
            used, self._used = self._used, None
            used.close()


def _connect() -> duckdb.DuckDBPyConnection:
    conn = duckdb.connect(config=dict(_SETTINGS))
    conn.execute("SET TimeZone = 'UTC'")
    conn.execute("SET python_enable_replacements = false")
    return conn


def _bound(conn: duckdb.DuckDBPyConnection, query: Query) -> None:
    """The same for every query of a worker's life."""
    conn.execute(f"SET memory_limit = '{int(query.limits.memory_mb)}MB'")


def _named(conn: duckdb.DuckDBPyConnection, query: Query) -> list[Source]:
    """Of the sources those that a user's statement names, if it is one that may run."""
    offered = {source.name: source for source in query.sources}
    tables = guard.referenced_tables(_parse(conn, query.sql), set(offered))
    return [offered[name] for name in sorted(tables)]


def _parse(conn: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    statements = conn.extract_statements(sql)
    if len(statements) != 1:
        raise InvalidRequest(f"exactly one statement is expected, not {len(statements)}")
    # Fetched whole: a connection with rows left over takes no further statement.
    ((found,),) = conn.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    tree: dict[str, Any] = json.loads(found)
    if statements[0].type.name != "SELECT" or tree["error"]:
        raise SqlForbidden(f"only SELECT is allowed, not {statements[0].type.name}")
    return tree


def _shut(conn: duckdb.DuckDBPyConnection, setting: str, allowed: list[str]) -> None:
    conn.execute(f"SET {setting} = {texts(allowed)}")
    conn.execute("SET enable_external_access = false")
    conn.execute("SET lock_configuration = true")


def _answer(conn: duckdb.DuckDBPyConnection, query: Query, meta: dict[str, Any]) -> Answered:
    result = conn.sql(query.sql, params=query.parameters or None)
    if result is None:
        raise SqlForbidden("only a statement that gives rows is allowed")
    columns = list(zip(result.columns, map(str, result.types), strict=True))
    rows = Rows(columns, result.to_arrow_reader(_BATCH_ROWS))
    told = {**meta, "truncated": False}
    return Answered(encode(query.format, rows, query.limits, told), told)


@contextmanager
def _explained(query: Query, root: str) -> Iterator[Callable[[Offer], None]]:
    """DuckDB's errors in our words; none tells where on this machine a file lies."""
    offers: list[Offer] = []
    try:
        yield offers.append
    except MemoryError:
        raise _too_much(query) from None
    except (duckdb.Error, OSError) as error:
        raise _meaning(str(error), query, root, offers) from None


def _meaning(message: str, query: Query, root: str, offers: list[Offer]) -> TristoreError:
    """By its first words: while rows are fetched, DuckDB's errors come as plain OSErrors."""
    kind = message.partition(" Error:")[0]
    if kind == "Out of Memory":
        return _too_much(query)
    if TOO_MANY in message:
        return TooBroad(TOO_MANY)
    if kind == "Permission":
        return SqlForbidden("the query reaches outside of the tables")
    for offer in offers:
        table = offer.table_in(message)
        if table is None and _UNREADABLE.search(message):
            table = ", ".join(sorted(set(offer.owners.values()))) or None
        if table is not None:
            return damaged(table)
    if kind in ("IO", message):
        return Unavailable("a file of the table could not be read; try again")
    return InvalidRequest(message.replace(root, "").strip())


def _too_much(query: Query) -> OutOfMemory:
    return OutOfMemory(
        f"the query needs more than {query.limits.memory_mb} MiB of memory; narrow it"
    )
