"""The partitions in Postgres: what each holds, whether it is closed, and by which revision."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psycopg

from tristore.db.queries import load
from tristore.db.wakeups import OUTBOX
from tristore.events import outbox
from tristore.events.payload import Payload
from tristore.events.payloads import TimestorePartitionClosed
from tristore.pipeline.contents import TableFile, settled
from tristore.pipeline.periods import Period
from tristore.timestore.dataset import Dataset

_sql = load("tristore.pipeline", "ledger.sql")

SOURCE = "timestore.pipeline"


@dataclass(frozen=True, slots=True)
class Entry:
    partition: str
    state: str
    revision: int


def observe(
    database_url: str, dataset: Dataset, version: int, found: Mapping[str, Sequence[TableFile]]
) -> None:
    """Tells Postgres of a version; whatever was not told after a kill is told now."""
    seen = [_seen(partition, files) for partition, files in found.items()]
    given = {
        "dataset": dataset.slug,
        "folder": dataset.folder,
        "version": version,
        "seen": json.dumps(seen, default=str),
        "settled": [name for name, files in found.items() if settled(files)],
    }
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.observe, given)


def entries(database_url: str, dataset: Dataset) -> dict[str, Entry]:
    with psycopg.connect(database_url) as conn:
        rows = conn.execute(_sql.partitions, {"dataset": dataset.slug})
        return {row[0]: Entry(*row) for row in rows}


def close(
    database_url: str, dataset: Dataset, entry: Entry, files: Sequence[TableFile], version: int
) -> bool:
    """Closes an open partition and tells of it; False if it changed meanwhile."""
    period = Period.of(entry.partition)
    payload = TimestorePartitionClosed(
        dataset=dataset.slug,
        partition=entry.partition,
        from_=period.start,
        to=period.end,
        rows=sum(file.rows for file in files),
        bytes=sum(file.size for file in files),
        files=len(files),
        table_version=version,
        revision=entry.revision,
    )
    given = {
        "dataset": dataset.slug,
        "partition": entry.partition,
        "revision": entry.revision,
        "rows": payload.rows,
        "bytes": payload.bytes,
        "files": payload.files,
        "version": version,
    }
    with psycopg.connect(database_url) as conn:
        told = conn.execute(_sql.close, {**given, **row_of(payload)}).rowcount == 1
    wake_relay(database_url)
    return told


def row_of(payload: Payload, correlation_id: str | None = None) -> dict[str, object]:
    """The event's columns in the outbox."""
    return outbox.row(payload, source=SOURCE, correlation_id=correlation_id)


def wake_relay(database_url: str) -> None:
    """After the commit, on a connection of its own: NOTIFY would hold up other commits."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])


def _seen(partition: str, files: Sequence[TableFile]) -> dict[str, object]:
    period = Period.of(partition)
    return {
        "partition": partition,
        "from_time": period.start,
        "to_time": period.end,
        "rows": sum(file.rows for file in files),
        "bytes": sum(file.size for file in files),
        "files": len(files),
    }
