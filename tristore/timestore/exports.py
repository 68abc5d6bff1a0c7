"""Exports as they are asked for and followed; the pipeline's driver carries them out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from psycopg.rows import class_row

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.errors import AlreadyExists, KeyConflict, NotFound
from tristore.timestore.times import as_text

_sql = load("tristore.timestore", "exports.sql")


@dataclass(frozen=True, slots=True)
class Wanted:
    """`target`: a name below the exports' folder, made up where none was given."""

    dataset: str
    format: str
    target: str | None
    from_time: datetime | None
    to_time: datetime | None

    def named(self) -> str:
        if self.target is not None:
            return self.target
        return f"{self.dataset}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{token_hex(4)}"


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks, and under which key."""

    principal: str
    token_id: str
    idempotency_key: str | None
    correlation_id: str | None


@dataclass(frozen=True, slots=True)
class Export:
    id: int
    dataset: str
    format: str
    target: str
    from_time: datetime | None
    to_time: datetime | None
    state: str
    progress: dict[str, Any]
    rows: int | None
    bytes: int | None
    files: int | None
    error: str | None
    table_version: int | None
    principal: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None

    def matches(self, wanted: Wanted) -> bool:
        named = wanted.target is None or wanted.target == self.target
        same = ("dataset", "format", "from_time", "to_time")
        return named and all(getattr(self, name) == getattr(wanted, name) for name in same)

    def to_json(self) -> dict[str, Any]:
        plain = ("dataset", "format", "target", "state", "progress", "rows", "bytes", "files")
        return {
            "id": str(self.id),
            **{name: getattr(self, name) for name in plain},
            "from": as_text(self.from_time),
            "to": as_text(self.to_time),
            "error": self.error,
            "tableVersion": self.table_version,
            "principal": self.principal,
            "createdAt": as_text(self.created_at),
            "startedAt": as_text(self.started_at),
            "completedAt": as_text(self.completed_at),
        }


async def create(pool: Pool, wanted: Wanted, asked: Asked) -> tuple[Export, bool]:
    """The export, and whether it was asked for before under the same key."""
    row = {**asdict(wanted), **asdict(asked), "target": wanted.named()}
    async with pool.connection() as conn, conn.transaction():
        added = await (await conn.execute(_sql.add, row)).fetchone()
        if added is not None:
            return await get(conn, int(str(added[0]))), False
        return await _earlier(conn, wanted, row), True


async def _earlier(conn: Connection, wanted: Wanted, row: dict[str, Any]) -> Export:
    known = await (await conn.execute(_sql.by_key, row)).fetchone()
    if known is None:
        raise AlreadyExists(f"there is an export called {row['target']}; choose another target")
    found = await get(conn, int(str(known[0])))
    if not found.matches(wanted):
        raise KeyConflict("that Idempotency-Key belongs to another request; use a new one")
    return found


async def get(conn: Connection, export_id: int) -> Export:
    cursor = conn.cursor(row_factory=class_row(Export))
    found = await (await cursor.execute(_sql.get, {"id": export_id})).fetchone()
    if found is None:
        raise absent()
    return found


async def page(
    conn: Connection,
    *,
    dataset: str | None,
    only: Sequence[str] | None,
    scopes: Sequence[str],
    before: int | None,
    limit: int,
) -> list[Export]:
    given = {"dataset": dataset, "before": before, "limit": limit, "scopes": list(scopes)}
    given["only"] = None if only is None else list(only)
    cursor = conn.cursor(row_factory=class_row(Export))
    return await (await cursor.execute(_sql.page, given)).fetchall()


def absent() -> NotFound:
    return NotFound("there is no such export, or this token may not see it")
