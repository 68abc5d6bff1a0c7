"""What the database tells about the workers, for readiness and metrics: they need no port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg.rows import tuple_row

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.events.admin import sync_health
from tristore.events.admin.sync_health import SyncHealth

_sql = load("tristore.events.admin", "vitals.sql")
# One look counts at most this many new events by source; the next goes on from there.
_COUNT_MOST = 200_000


@dataclass(frozen=True, slots=True)
class Pulse:
    last_sequence: int
    newest_dead_letter: int
    oldest_pending: int | None
    pending_seconds: float
    oldest_enqueued: int | None
    overdue_seconds: float  # how long the oldest lease has run out; negative while it holds


@dataclass(frozen=True, slots=True)
class Vitals:
    pulse: Pulse
    backlog: dict[tuple[str, str], tuple[int, int]]  # by state and source: events, failed sends
    dead_letters: dict[tuple[str, str], int]
    consumers: dict[str, int]
    sync: SyncHealth | None  # None where it is switched off
    stored: dict[str, int]  # since the last look
    counted_to: int


async def pulse(pool: Pool) -> Pulse:
    async with _looking(pool) as conn:
        return await _pulse(conn)


async def sync(pool: Pool, records_of_nodes: str | None) -> SyncHealth | None:
    """The filestore sync, unless it is off or was never started here."""
    if records_of_nodes is None:
        return None
    async with _looking(pool) as conn:
        found = await sync_health.read(conn, records_of_nodes)
    return None if found.sequence is None else found


async def examine(
    pool: Pool, counted_to: int | None, records_of_nodes: str | None = None
) -> Vitals:
    """Everything the metrics show; events by source are counted from `counted_to` on."""
    async with _looking(pool) as conn:
        found = await _pulse(conn)
        after = found.last_sequence if counted_to is None else counted_to
        upto = min(found.last_sequence, after + _COUNT_MOST)
        return Vitals(
            pulse=found,
            backlog={(st, so): (n, f) for st, so, n, f in await _rows(conn, _sql.backlog)},
            dead_letters={(r, s): n for r, s, n in await _rows(conn, _sql.open_dead_letters)},
            consumers=dict(await _rows(conn, _sql.consumers)),
            sync=await sync_health.read(conn, records_of_nodes) if records_of_nodes else None,
            stored=dict(await _rows(conn, _sql.stored, after=after, upto=upto)),
            counted_to=upto,
        )


@asynccontextmanager
async def _looking(pool: Pool) -> AsyncIterator[Connection]:
    async with pool.connection(timeout=1.5) as conn, conn.transaction():
        await conn.execute(_sql.bounded)
        yield conn


async def _pulse(conn: Connection) -> Pulse:
    (row,) = await _rows(conn, _sql.pulse)
    return Pulse(*row)


async def _rows(conn: Connection, query: str, **parameters: int) -> list[Any]:
    cursor = conn.cursor(row_factory=tuple_row)
    return await (await cursor.execute(query, parameters)).fetchall()
