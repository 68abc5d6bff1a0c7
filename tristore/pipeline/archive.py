"""Events that the log no longer keeps, read from the `events` table, as rows of activity."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from tristore.db.queries import load
from tristore.errors import TristoreError
from tristore.pipeline import log

if TYPE_CHECKING:
    import pyarrow as pa

_sql = load("tristore.pipeline", "archive.sql")

_READ = ("id", "type", "occurred_at", "ingress_sequence", "payload", "correlation_id")


def activity(events: DataFrame, database_url: str) -> DataFrame:
    """By the view that makes rows of the log's events, so that there is one rule for both."""
    told = events.where("type LIKE 'filestore.%'").select(*_READ)
    return told.mapInArrow(Mapping(database_url), log.ACTIVITY_SCHEMA)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Hands events to Postgres and takes rows of activity; travels to executors."""

    database_url: str = field(repr=False)

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.database_url, autocommit=True) as conn, conn.cursor() as cursor:
            cursor.execute(_sql.view)
            statement = _sql.activity.format(view=_over_archive(cursor.fetchall()[0][0]))
            for batch in batches:
                if not batch.num_rows:
                    continue
                cursor.adbc_ingest("archived", batch, mode="create", temporary=True)
                cursor.execute(statement)
                yield from cursor.fetch_record_batch()
                cursor.execute(_sql.clear)


def _over_archive(view: str) -> str:
    """The view's own text, with our rows where it has the log's."""
    if view.count(_sql.log) != 1:
        raise TristoreError("the view of filestore activity reads the log in a way not known here")
    return view.strip().rstrip(";").replace(_sql.log, _sql.archived)
