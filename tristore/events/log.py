"""The log: every accepted event once, in one order without gaps."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson
from psycopg import AsyncCursor
from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events.envelope import Event, time_text
from tristore.events.log_copy import COLUMNS, copied

Cursor = AsyncCursor[tuple[object, ...]]
# Up to so many events one statement is quicker than asking first and copying then.
FEW = 50
_COPY = f"COPY bus.workflow_events ({COLUMNS}) FROM STDIN (FORMAT BINARY)"
_sql = load("tristore.events", "log.sql")


@dataclass(frozen=True, slots=True)
class Head:
    last: int
    earliest: int
    epoch: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A row of the log, as every reader gets it."""

    ingress_sequence: int
    id: str
    type: str
    source: str
    occurred_at: datetime
    received_at: datetime
    payload: dict[str, Any]
    correlation_id: str | None
    ttl_ms: int | None
    metadata: dict[str, Any] | None
    schema_version: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": self.type,
            "source": self.source,
            "occurredAt": time_text(self.occurred_at),
            "receivedAt": time_text(self.received_at),
            "ingressSequence": self.ingress_sequence,
            "payload": self.payload,
            "correlationId": self.correlation_id,
            "ttl": self.ttl_ms,
            "metadata": self.metadata,
            "schemaVersion": self.schema_version,
        }


@dataclass(frozen=True, slots=True)
class Appended:
    """The sequence numbers of what was new, by id; `refused` if nothing was to be stored."""

    stored: dict[str, int]
    refused: bool


async def append(
    conn: Connection, events: Sequence[Event], hashes: Sequence[bytes]
) -> dict[str, int]:
    """Stores the new ones among `events` (ids distinct) and returns their sequence numbers.

    Call inside a transaction that does nothing slow afterwards: the head row stays locked until
    it ends. Events that are missing in the answer were there before.
    """
    if len(events) > FEW:
        return await _append_many(conn, events, hashes)
    async with conn.pipeline():
        cursor = await start_append(conn, events, hashes)
    return (await end_append(cursor)).stored


async def start_append(
    conn: Connection, events: Sequence[Event], hashes: Sequence[bytes], revision: int | None = None
) -> Cursor:
    """Two statements for a pipeline that is open; the cursor has the answer after its end. With a
    revision, nothing is stored unless that is the schemas' and there are no suspects."""
    batch = [_row(event, body_hash) for event, body_hash in zip(events, hashes, strict=True)]
    await conn.execute(_sql.lock_head)
    given = {"events": orjson.dumps(batch).decode(), "revision": revision}
    return await conn.execute(_sql.append, given)


async def end_append(cursor: Cursor) -> Appended:
    rows = cast(list[tuple[str | None, int, bool]], await cursor.fetchall())
    stored = {event_id: sequence for event_id, sequence, _ in rows if event_id is not None}
    return Appended(stored, refused=not rows[0][2])


async def _append_many(
    conn: Connection, events: Sequence[Event], hashes: Sequence[bytes]
) -> dict[str, int]:
    """The same with one round trip more and half the work for the server."""
    ids = [event.id for event in events]
    async with conn.pipeline():
        await conn.execute(_sql.lock_head)
        end = await conn.execute(_sql.end)
        known = await conn.execute(_sql.known, {"id": orjson.dumps(ids).decode()})
    ((last, received_at),) = cast(list[tuple[int, datetime]], await end.fetchall())
    old = {row[0] for row in await known.fetchall()}
    fresh = [pair for pair in zip(events, hashes, strict=True) if pair[0].id not in old]
    rows = [(last + place, event, digest) for place, (event, digest) in enumerate(fresh, 1)]
    async with conn.cursor().copy(_COPY) as copy:
        await copy.write(copied(rows, received_at))
    await conn.execute(_sql.move_head, {"count": len(rows)})
    return {event.id: sequence for sequence, event, _ in rows}


async def stored_hashes(conn: Connection, ids: Sequence[str]) -> dict[str, bytes]:
    cursor = await conn.execute(_sql.hashes, {"id": list(ids)})
    return dict(cast(list[tuple[str, bytes]], await cursor.fetchall()))


async def head(conn: Connection) -> Head:
    cursor = conn.cursor(row_factory=class_row(Head))
    row = await (await cursor.execute(_sql.head)).fetchone()
    assert row is not None
    return row


async def read(conn: Connection, after: int, limit: int) -> list[Stored]:
    cursor = conn.cursor(row_factory=class_row(Stored))
    await cursor.execute(_sql.read, {"after": after, "limit": limit})
    return await cursor.fetchall()


def _row(event: Event, body_hash: bytes) -> dict[str, Any]:
    return {
        "id": event.id,
        "type": event.type,
        "source": event.source,
        "occurred_at": event.occurred_at,
        "payload": event.payload,
        "correlation_id": event.correlation_id,
        "ttl_ms": event.ttl,
        "metadata": event.metadata,
        "schema_version": event.schema_version,
        "body_hash": body_hash.hex(),
    }
