"""The outbox: events committed together with the rows they tell about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

import orjson

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import IdConflict
from tristore.events.envelope import (
    MAX_CORRELATION_ID,
    MAX_PAYLOAD_BYTES,
    Event,
    hash_of,
    new_id,
    now_text,
)
from tristore.events.payload import Payload

_sql = load("tristore.events", "outbox.sql")


@dataclass(frozen=True, slots=True)
class Claim:
    """Rows one relay holds until the lease ends; the token fences it off from other relays."""

    token: str
    envelopes: list[str]


@dataclass(frozen=True, slots=True)
class Finished:
    """An event that is settled. Without a hash it is found by the claim it came with."""

    event_id: str
    body_hash: bytes | None
    token: str


async def add(
    conn: Connection,
    payload: Payload,
    *,
    source: str,
    correlation_id: str | None = None,
    metadata: dict[str, object] | None = None,
) -> Event:
    """Adds a catalogue event to the caller's transaction; it exists if and only if that commits."""
    event = Event.make(
        payload.TYPE,
        payload.to_json(),
        source=source,
        correlationId=correlation_id,
        metadata=metadata,
        schemaVersion=payload.SCHEMA_VERSION,
    )
    await add_event(conn, event)
    return event


async def add_many(
    conn: Connection, told: Sequence[tuple[Payload, str | None]], *, source: str
) -> None:
    """The same for any number of payloads, each with its correlation id, in one statement."""
    if not told:
        return
    made = [row(payload, source=source, correlation_id=given) for payload, given in told]
    await conn.execute(_sql.add_many, {"rows": _document(made)})


def rows(payloads: Iterable[Payload], *, source: str, correlation_id: str | None) -> str:
    """A JSON list of such rows, the hash in hexadecimal, for a store that adds several events in a
    statement of its own."""
    return _document([row(p, source=source, correlation_id=correlation_id) for p in payloads])


def _document(made: list[dict[str, Any]]) -> str:
    listed = [{**one, "body_hash": one["body_hash"].hex()} for one in made]
    return orjson.dumps(listed).decode()


def row(payload: Payload, *, source: str, correlation_id: str | None) -> dict[str, Any]:
    """The columns of `bus.outbox`, for a store that adds an event in a statement of its own, where
    a second one would cost as much as the first.

    What is made here from a typed payload keeps the envelope's rules, but for its length and for
    texts that are no texts: those take the way of every event, which says what is wrong.
    """
    event_id, fields = new_id(), payload.to_json()
    envelope = _dumped(event_id, payload, fields, source, correlation_id)
    if envelope is None:
        given = {"schemaVersion": payload.SCHEMA_VERSION, "correlationId": correlation_id}
        return _row(Event.make(payload.TYPE, fields, source=source, **given))
    body_hash = hash_of(payload.TYPE, source, fields)
    return {"event_id": event_id, "source": source, "body_hash": body_hash, "envelope": envelope}


def _dumped(
    event_id: str, payload: Payload, fields: dict[str, object], source: str, given: str | None
) -> str | None:
    envelope: dict[str, object] = {"id": event_id, "type": payload.TYPE, "source": source}
    envelope |= {"occurredAt": now_text(), "payload": fields}
    envelope["schemaVersion"] = payload.SCHEMA_VERSION
    if given is not None:
        envelope["correlationId"] = given
    try:
        text = orjson.dumps(envelope)
    except TypeError:
        return None
    plain = len(text) <= MAX_PAYLOAD_BYTES and b"\\u0000" not in text
    return text.decode() if plain and (given is None or len(given) <= MAX_CORRELATION_ID) else None


async def add_event(conn: Connection, event: Event) -> None:
    """The same for an event of any type. Postgres checks the id's uniqueness."""
    await conn.execute(_sql.add, _row(event))


def _row(event: Event) -> dict[str, Any]:
    return {
        "event_id": event.id,
        "source": event.source,
        "body_hash": event.body_hash(),
        "envelope": event.dumps().decode(),
    }


async def offer(conn: Connection, events: Sequence[Event]) -> list[dict[str, object]]:
    """Accepts events from outside, in order, and says what became of each.

    An id that is known with the same body is a duplicate; with another body it is a conflict
    and nothing of the call is accepted.
    """
    first = {event.id: event for event in reversed(events)}
    fresh = list(dict.fromkeys(first[event.id].id for event in events))
    rows = [_row(first[event_id]) for event_id in fresh]
    columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
    added = {row[0] for row in await (await conn.execute(_sql.offer, columns)).fetchall()}
    known = await _known(conn, [event_id for event_id in fresh if event_id not in added])
    hashes = {row["event_id"]: row["body_hash"] for row in rows} | {
        event_id: body_hash for event_id, (body_hash, _) in known.items()
    }
    if clash := next((e.id for e in events if e.body_hash() != hashes[e.id]), None):
        raise IdConflict(f"id {clash} is taken by an event with another body; use a new id")
    return [_result(event.id, added, known) for event in events]


def _result(
    event_id: str, added: set[object], known: dict[str, tuple[bytes, int | None]]
) -> dict[str, object]:
    if event_id in added:
        added.discard(event_id)
        return {"id": event_id, "status": "accepted"}
    sequence = known.get(event_id, (b"", None))[1]
    found = {} if sequence is None else {"sequence": sequence}
    return {"id": event_id, "status": "duplicate", **found}


async def _known(conn: Connection, ids: list[str]) -> dict[str, tuple[bytes, int | None]]:
    if not ids:
        return {}
    rows = await (await conn.execute(_sql.known, {"event_id": ids})).fetchall()
    return {event_id: (body_hash, sequence) for event_id, body_hash, sequence in cast(Any, rows)}


async def claim(conn: Connection, *, limit: int, most: int, lease_seconds: float) -> Claim:
    """Up to `limit` rows, as long as fewer than `most` are under way."""
    token = uuid4().hex
    given = {"token": token, "limit": limit, "most": most, "lease": lease_seconds}
    rows = await (await conn.execute(_sql.claim, given)).fetchall()
    return Claim(token, [str(envelope) for _, envelope in sorted(rows)])


async def release(conn: Connection, claim: Claim) -> None:
    await conn.execute(_sql.release, {"token": claim.token})


async def expire(conn: Connection) -> int:
    """How many rows were taken back from a queue that lost them."""
    return (await conn.execute(_sql.expire)).rowcount


async def finish(conn: Connection, settled: Sequence[Finished]) -> None:
    """Marks rows done; call it in the transaction that settles their events."""
    rows = [
        {"event_id": x.event_id, "body_hash": x.body_hash and x.body_hash.hex(), "token": x.token}
        for x in settled
    ]
    await conn.execute(_sql.finish, {"settled": orjson.dumps(rows).decode()})
