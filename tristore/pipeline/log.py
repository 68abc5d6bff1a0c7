"""The event log as the pipeline sees it: its head, a position in it, and its rows as Arrow."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from tristore.db.queries import load
from tristore.errors import CheckpointMismatch

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_sql = load("tristore.pipeline", "log.sql")

CONSUMER = "tristore.pipeline"

# Spark's names of the types `read_range` selects; all nullable, as Parquet has them from Spark.
SCHEMA = (
    "id string, type string, source string, occurred_at timestamp, received_at timestamp, "
    "ingress_sequence bigint, payload string, correlation_id string, ttl_ms bigint, "
    "metadata string, schema_version int, body_hash binary"
)

# The same for `read_activity`: one row an event, several for an import.
ACTIVITY_SCHEMA = (
    "sequence bigint, event_id string, ordinal int, occurred_at timestamp, type string, "
    "command string, mount string, path string, folder string, node_id string, kind string, "
    "size_bytes bigint, size_delta bigint, state string, outcome string, duration_ms bigint, "
    "principal string, journal_id bigint, correlation_id string, previous_path string"
)

_REBUILD = (
    "point the pipeline at the right database, or move the checkpoint folder and the table "
    "away and start again to rebuild the table from the log"
)


@dataclass(frozen=True, slots=True)
class Position:
    """Everything up to and including `sequence` has been read, in the log called `epoch`."""

    epoch: str
    sequence: int

    def as_offset(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "sequence": self.sequence}

    @classmethod
    def of_offset(cls, offset: dict[str, Any]) -> "Position":
        return cls(str(offset["epoch"]), int(offset["sequence"]))


@dataclass(frozen=True, slots=True)
class Head:
    epoch: str
    last: int
    earliest: int

    def refuse_foreign(self, position: Position) -> None:
        """A position of another log would skip or repeat events without a sign."""
        if position.epoch != self.epoch:
            raise CheckpointMismatch(
                f"the checkpoint belongs to log epoch {position.epoch}, but this log's epoch is "
                f"{self.epoch} (restored or another database): {_REBUILD}"
            )
        if position.sequence > self.last:
            raise CheckpointMismatch(
                f"the checkpoint stands at sequence {position.sequence}, but the log ends at "
                f"{self.last}: {_REBUILD}"
            )
        if position.sequence + 1 < self.earliest:
            raise CheckpointMismatch(
                f"the checkpoint stands at sequence {position.sequence}, but the log keeps only "
                f"events from {self.earliest} on: {_REBUILD}"
            )


def head(database_url: str) -> Head:
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.head).fetchone()
    if row is None:
        raise CheckpointMismatch("the log has no head row; run `tristore migrate`")
    return Head(*row)


def event_id(database_url: str, sequence: int) -> str | None:
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.event_id, {"sequence": sequence}).fetchone()
    return None if row is None else str(row[0])


def record(database_url: str, position: Position) -> None:
    """Told after the table has it, so that it is never ahead of the table."""
    given = {"consumer": CONSUMER, "sequence": position.sequence, "epoch": position.epoch}
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.record, given)


def record_fed(database_url: str, datasets: Iterable[str], reached: Position, after: int) -> None:
    """What operators hold the log to: `(after, reached]` is in the tables of these datasets."""
    stretch = {"epoch": reached.epoch, "after": after, "through": reached.sequence}
    with psycopg.connect(database_url) as conn:
        for dataset in datasets:
            conn.execute(_sql.record_fed, {"dataset": dataset, **stretch})


def read(database_url: str, after: int, through: int) -> Iterator["RecordBatch"]:
    """The events of `(after, through]`; numbers have no gaps, so fewer rows are an error."""
    rows = 0
    for batch in _fetch(database_url, _sql.read_range, after, through):
        rows += batch.num_rows
        yield batch
    if rows != through - after:
        raise CheckpointMismatch(
            f"the log has {rows} of the {through - after} events in ({after}, {through}]; "
            "events were removed behind the pipeline: restore them, or move the checkpoint "
            "folder and the table away and start again"
        )


def read_activity(database_url: str, after: int, through: int) -> Iterator["RecordBatch"]:
    """What filestore events of `(after, through]` are as rows. Nothing tells how many there must
    be, so it is looked at afterwards whether the log still had them all."""
    yield from _fetch(database_url, _sql.read_activity, after, through)
    if through > after and (earliest := head(database_url).earliest) > after + 1:
        raise CheckpointMismatch(
            f"the log was cut to {earliest} while ({after}, {through}] was read: try again, "
            "which takes what is gone from `events`"
        )


def count_activity(database_url: str, after: int, through: int) -> int:
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.count_activity, {"after": after, "through": through}).fetchone()
    assert row is not None
    return int(row[0])


def _fetch(database_url: str, sql: str, after: int, through: int) -> Iterator["RecordBatch"]:
    # Imported here: this runs in executors' workers, and planning needs no ADBC.
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(database_url, autocommit=True) as conn, conn.cursor() as cursor:
        cursor.execute(sql.format(after=int(after), through=int(through)))
        yield from cursor.fetch_record_batch()
