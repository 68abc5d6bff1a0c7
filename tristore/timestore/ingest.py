"""Staged batches: numbered in one order, found again by their key."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from psycopg.rows import class_row

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load

_sql = load("tristore.timestore", "ingest.sql")


@dataclass(frozen=True, slots=True)
class Batch:
    """What is kept of an ingest; its `id` is its place in the order of all of them."""

    id: int
    dataset: str
    state: Literal["staged", "committed", "failed"]
    format: str
    rows: int
    size: int
    from_time: datetime | None
    to_time: datetime | None
    schema_version: int
    table_version: int | None
    error: str | None
    principal: str | None
    request_hash: bytes | None
    correlation_id: str | None
    staged_at: datetime
    committed_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "ingestId": self.id,
            "dataset": self.dataset,
            "status": self.state,
            "format": self.format,
            "rows": self.rows,
            "bytes": self.size,
            "from": _time(self.from_time),
            "to": _time(self.to_time),
            "schemaVersion": self.schema_version,
            "tableVersion": self.table_version,
            "error": self.error,
            "principal": self.principal,
            "correlationId": self.correlation_id,
            "stagedAt": _time(self.staged_at),
            "committedAt": _time(self.committed_at),
        }


@dataclass(frozen=True, slots=True)
class NewBatch:
    dataset: str
    file: str
    format: str
    rows: int
    size: int
    from_time: str
    to_time: str
    schema_version: int
    token_id: str
    principal: str
    key: str | None
    request_hash: bytes
    correlation_id: str | None


async def find(conn: Connection, batch_id: int) -> Batch | None:
    return await _one(conn, _sql.find, {"id": batch_id})


async def by_key(conn: Connection, dataset: str, token_id: str, key: str) -> Batch | None:
    return await _one(conn, _sql.by_key, {"dataset": dataset, "token_id": token_id, "key": key})


async def by_file(conn: Connection, file: str) -> Batch | None:
    return await _one(conn, _sql.by_file, {"file": file})


async def add(conn: Connection, batch: NewBatch) -> Batch:
    """In the caller's transaction, as its last statement: until it ends no other can be added."""
    row = {name: getattr(batch, name) for name in batch.__slots__}
    made = await _one(conn, _sql.add, row)
    assert made is not None
    return made


async def waiting(pool: Pool) -> dict[str, int]:
    """For metrics: staged batches by dataset."""
    async with pool.connection() as conn:
        rows: Any = await (await conn.execute(_sql.waiting)).fetchall()
    return dict(rows)


async def settled(conn: Connection, ids: list[int]) -> set[int]:
    """Those of the batches that are committed or failed."""
    cursor = await conn.execute(_sql.settled, {"ids": ids})
    return {row[0] for row in await cursor.fetchall() if isinstance(row[0], int)}


async def _one(conn: Connection, query: str, given: dict[str, Any]) -> Batch | None:
    cursor = conn.cursor(row_factory=class_row(Batch))
    return await (await cursor.execute(query, given)).fetchone()


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
