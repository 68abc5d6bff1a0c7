"""A replay: dead letters sent again through the outbox, as they were or corrected."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

import psycopg

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.db.wakeups import OUTBOX
from tristore.errors import IdConflict, InvalidEvent, Violation
from tristore.events import outbox, strictjson
from tristore.events.admin import letter as letters
from tristore.events.admin.letter import Filter, Letter
from tristore.events.envelope import Event, time_text

_sql = load("tristore.events.admin", "replay.sql")
# Payload, metadata and the other fields of the largest event, written in the longest way.
LARGEST_RAW = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Correction:
    """What is sent instead: another payload in the same envelope, or a whole event."""

    payload: dict[str, Any] | None = None
    event: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """`duplicate` if the same event was stored or waiting already."""

    letter_id: int
    event_id: str
    status: str

    def to_json(self) -> dict[str, Any]:
        return {"id": self.letter_id, "eventId": self.event_id, "status": self.status}


@dataclass(slots=True)
class Outcome:
    """What became of each letter of a replay by filter; the refused ones stay open."""

    sent: list[Sent] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)
    last: int | None = None

    def to_json(self) -> dict[str, Any]:
        refused = [{"id": letter_id, "detail": detail} for letter_id, detail in self.refused]
        return {"replayed": [one.to_json() for one in self.sent], "refused": refused}


async def replay(conn: Connection, letter_id: int, correction: Correction, *, by: str) -> Sent:
    """Call inside a transaction: the letter is settled if and only if its event is on its way."""
    letter = await letters.lock(conn, letter_id)
    return await _send(conn, letter, as_event(letter, correction), by)


async def replay_all(
    conn: Connection, wanted: Filter, *, after: int, limit: int, by: str
) -> Outcome:
    """Up to `limit` open letters as they are, oldest first; `last` is set if more may follow."""
    found = await letters.lock_open(conn, wanted, after=after, limit=limit, largest=LARGEST_RAW)
    outcome = Outcome(last=found[-1].id if len(found) == limit else None)
    for letter in found:
        try:
            outcome.sent.append(await _send(conn, letter, as_event(letter, Correction()), by))
        except (InvalidEvent, IdConflict) as refusal:
            outcome.refused.append((letter.id, str(refusal)))
    return outcome


def as_event(letter: Letter, correction: Correction) -> Event:
    """The event to send. Its schema is checked where every event's is, at ingress."""
    given: Any = correction.event
    if given is None:
        given = _parsed(letter)
        if correction.payload is not None:
            given = {**given, "payload": correction.payload}
    event = Event.parse(given, _defaults(letter))
    if not event.expired(datetime.now(UTC)):
        return event
    if correction.event is not None:
        raise _refusal("expired", "/ttl", "it would arrive after its ttl; leave the ttl out")
    # Whoever replays an event whose time has run out wants it stored all the same.
    return event.model_copy(update={"ttl": None})


def _parsed(letter: Letter) -> dict[str, Any]:
    how = 'send the event as it should be, as {"event": {…}}'
    if len(letter.raw) != letter.raw_bytes or letter.raw_bytes > LARGEST_RAW:
        raise _refusal("envelope_invalid", "", f"{letter.raw_bytes} bytes are no event; {how}")
    try:
        value = strictjson.loads(letter.raw)
    except strictjson.StrictJsonError as error:
        raise _refusal("envelope_invalid", "", f"{error}; {how}") from None
    if not isinstance(value, dict):
        raise _refusal("envelope_invalid", "", f"an event is a JSON object; {how}")
    return value


def _defaults(letter: Letter) -> dict[str, str]:
    """The same whenever the letter is sent, so that a second try cannot make a second event."""
    made = str(uuid5(NAMESPACE_URL, f"tristore:dead-letter/{letter.id}"))
    return {"id": letter.event_id or made, "occurredAt": time_text(letter.first_seen_at)}


async def _send(conn: Connection, letter: Letter, event: Event, by: str) -> Sent:
    status = await _offer(conn, event)
    await conn.execute(_sql.acquit, {"raw_hash": hashlib.sha256(letter.raw).digest()})
    await letters.settle(conn, letter, "replayed", by=by, replayed_as=event.id)
    await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
    return Sent(letter.id, event.id, status)


async def _offer(conn: Connection, event: Event) -> str:
    body_hash = event.body_hash()
    cursor = await conn.execute(_sql.standing, {"event_id": event.id})
    row = cast(Sequence[bytes | None], await cursor.fetchone())
    standing = {found for found in row if found is not None}
    if body_hash in standing:
        return "duplicate"
    if standing:
        raise IdConflict(
            f"id {event.id} belongs to an event with another body; "
            'send a corrected {"event": {…}} with an id of its own'
        )
    given = {
        "event_id": event.id,
        "source": event.source,
        "body_hash": body_hash,
        "envelope": event.dumps().decode(),
    }
    if not (await conn.execute(_sql.renew, given)).rowcount:
        await _add(conn, event)
    return "accepted"


async def _add(conn: Connection, event: Event) -> None:
    try:
        async with conn.transaction():
            await outbox.add_event(conn, event)
    except psycopg.errors.UniqueViolation:
        raise IdConflict(f"id {event.id} is being sent by someone else; look again") from None


def _refusal(reason: str, path: str, message: str) -> InvalidEvent:
    return InvalidEvent(reason, [Violation(path, message)])
