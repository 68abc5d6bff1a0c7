"""How the bus is: what waits, who is behind, what was refused, who publishes how much."""

from typing import Any

from psycopg.rows import dict_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import TristoreError
from tristore.events.admin import sync_health
from tristore.events.envelope import time_text
from tristore.events.queue import EventQueue

_sql = load("tristore.events.admin", "health.sql")
# Events looked at to tell who published how many; the sum is exact, the shares are estimates
# when more were published.
_SAMPLE = 5000
_RATES = {"lastMinute": 60, "lastFiveMinutes": 300}
WORKERS = ("relay", "ingress")


async def read(conn: Connection, records_of_nodes: str | None = None) -> dict[str, Any]:
    """`records_of_nodes` is the namespace the filestore sync writes to, unless it is off."""
    bus = (await _rows(conn, _sql.bus))[0]
    return {
        "outbox": {
            "pending": bus["pending"],
            "enqueued": bus["enqueued"],
            "oldestPendingSeconds": bus["oldest_seconds"],
            "stuckLeases": bus["stuck_leases"],
            "sources": [_source(row) for row in await _rows(conn, _sql.backlog)],
        },
        "lastSequence": bus["last"],
        "earliestSequence": bus["earliest"],
        "epoch": bus["epoch"],
        "consumers": [_consumer(row) for row in await _rows(conn, _sql.consumers)],
        "sync": await sync_health.shown(conn, records_of_nodes),
        "deadLetters": _letters(await _rows(conn, _sql.dead_letters)),
        "publishRates": {name: await _rates(conn, seconds) for name, seconds in _RATES.items()},
        "parts": await parts(conn),
    }


async def queue(queue: EventQueue | None) -> dict[str, Any]:
    """A queue that is away is an answer, not an error: the rest is still worth reading."""
    if queue is None:
        return {"depth": 0, "error": None}
    try:
        return {"depth": await queue.depth(), "error": None}
    except TristoreError as error:
        return {"depth": None, "error": str(error)}


async def parts(conn: Connection) -> dict[str, int]:
    """Connections by part. A worker that is not listed is not running, or not on this database."""
    found = dict.fromkeys(WORKERS, 0)
    cursor = await conn.execute(_sql.parts, {})
    return found | {str(name): int(str(count)) for name, count in await cursor.fetchall()}


async def _rates(conn: Connection, seconds: int) -> dict[str, Any]:
    cursor = await conn.execute(_sql.since, {"seconds": seconds})
    row: Any = await cursor.fetchone()
    after, last = row
    total = last - after
    step = max(1, -(-total // _SAMPLE))
    given = {"after": after, "last": last, "step": step}
    found: Any = await (await conn.execute(_sql.shares, given)).fetchall()
    seen = sum(count for _, count in found)
    sources = [
        {"source": source, "perSecond": round(total * count / seen / seconds, 3)}
        for source, count in found
    ]
    return {"perSecond": round(total / seconds, 3), "estimated": step > 1, "sources": sources}


async def _rows(conn: Connection, query: str) -> list[dict[str, Any]]:
    return await (await conn.cursor(row_factory=dict_row).execute(query)).fetchall()


def _source(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "source": row["source"],
        "pending": row["pending"],
        "enqueued": row["enqueued"],
        "failedSends": row["failed_sends"],
        "oldestPendingSeconds": row["oldest_seconds"],
    }


def _consumer(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "consumer": row["consumer"],
        "sequence": row["sequence"],
        "lag": row["lag"],
        "lastError": row["last_error"],
        "updatedAt": time_text(row["updated_at"]),
    }


def _letters(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "open": sum(row["open"] for row in rows),
        "lastHour": sum(row["last_hour"] for row in rows),
        "byReason": [
            {
                "reason": row["reason"],
                "source": row["source"],
                "open": row["open"],
                "lastHour": row["last_hour"],
            }
            for row in rows
        ],
    }
