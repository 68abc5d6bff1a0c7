"""A letter: a dead letter as an operator finds it and settles it."""

import logging
from base64 import b64encode
from codecs import getincrementaldecoder
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import AlreadySettled, NotFound
from tristore.events import log
from tristore.events.admin import listing
from tristore.events.admin.listing import Pattern
from tristore.events.envelope import time_text

_sql = load("tristore.events.admin", "letter.sql")
_log = logging.getLogger(__name__)
# A list shows this much of each letter's bytes; the letter itself shows all.
SHOWN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Letter:
    """A row of the table; `raw` may be only the beginning of its `raw_bytes`."""

    id: int
    event_id: str | None
    type: str | None
    source: str | None
    reason: str
    errors: list[dict[str, str]]
    raw: bytes
    raw_bytes: int
    attempts: int
    first_seen_at: datetime
    last_seen_at: datetime
    state: str
    settled_at: datetime | None
    settled_by: str | None
    replayed_as: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "eventId": self.event_id,
            "type": self.type,
            "source": self.source,
            "reason": self.reason,
            "errors": self.errors,
            **_shown(self.raw, self.raw_bytes),
            "attempts": self.attempts,
            "firstSeenAt": time_text(self.first_seen_at),
            "lastSeenAt": time_text(self.last_seen_at),
            "state": self.state,
            "settledAt": self.settled_at and time_text(self.settled_at),
            "settledBy": self.settled_by,
            "replayedAs": self.replayed_as,
        }


@dataclass(frozen=True, slots=True)
class Filter:
    """`since` and `until` bound when a letter was last seen; a state of None means any."""

    reason: str | None = None
    type: Pattern | None = None
    source: Pattern | None = None
    since: datetime | None = None
    until: datetime | None = None
    state: str | None = "open"

    def values(self) -> dict[str, Any]:
        return {
            "reason": self.reason,
            "type": self.type and self.type.exact,
            "type_prefix": self.type and self.type.prefix,
            "source": self.source and self.source.exact,
            "source_prefix": self.source and self.source.prefix,
            "since": self.since,
            "until": self.until,
            "state": self.state,
        }


async def find(
    conn: Connection, wanted: Filter, limit: int, cursor: str | None
) -> tuple[list[Letter], str | None]:
    """A page, newest first, and the cursor of the next one."""
    epoch, mark = (await log.head(conn)).epoch, listing.fingerprint(wanted)
    before = 2**63 - 1 if cursor is None else listing.read_number(cursor, epoch, mark)
    given = {**wanted.values(), "before": before, "shown": SHOWN_BYTES, "limit": limit + 1}
    rows = await _letters(conn, _sql.page, given)
    more = len(rows) > limit
    return rows[:limit], listing.write_cursor(epoch, mark, rows[limit - 1].id) if more else None


async def get(conn: Connection, letter_id: int) -> Letter:
    return _only(await _letters(conn, _sql.one, {"id": letter_id}), letter_id)


async def lock(conn: Connection, letter_id: int) -> Letter:
    """The letter, held until the transaction ends; refused if it is settled already."""
    letter = _only(await _letters(conn, _sql.lock, {"id": letter_id}), letter_id)
    if letter.state != "open":
        outcome = f"replayed as {letter.replayed_as}" if letter.replayed_as else letter.state
        raise AlreadySettled(f"dead letter {letter.id} was {outcome} by {letter.settled_by}")
    return letter


async def lock_open(
    conn: Connection, wanted: Filter, *, after: int, limit: int, largest: int
) -> list[Letter]:
    """Open letters, oldest first; one larger than `largest` comes without its bytes."""
    given = {**wanted.values(), "after": after, "limit": limit, "largest": largest}
    return await _letters(conn, _sql.lock_open, given)


async def count_open(conn: Connection, wanted: Filter, *, after: int) -> tuple[int, list[int]]:
    """How many letters match, and the ids of the first."""
    query = _sql.count_open.replace("{matching}", _sql.matching)
    cursor = await conn.execute(query, {**wanted.values(), "after": after})
    row: Any = await cursor.fetchone()
    return row[0], row[1]


async def settle(
    conn: Connection, letter: Letter, state: str, *, by: str, replayed_as: str | None = None
) -> None:
    given = {"id": letter.id, "state": state, "by": by, "replayed_as": replayed_as}
    await conn.execute(_sql.settle, given)
    _log.info("dead letter settled", extra={**given, "event_id": letter.event_id})


async def discard(conn: Connection, letter_id: int, *, by: str) -> Letter:
    """Discarding twice is discarding once."""
    found = await get(conn, letter_id)
    if found.state != "discarded":
        await settle(conn, await lock(conn, letter_id), "discarded", by=by)
    return await get(conn, letter_id)


async def _letters(conn: Connection, query: str, given: dict[str, Any]) -> list[Letter]:
    cursor = conn.cursor(row_factory=class_row(Letter))
    await cursor.execute(query.replace("{matching}", _sql.matching), given, prepare=False)
    return await cursor.fetchall()


def _only(found: list[Letter], letter_id: int) -> Letter:
    if not found:
        raise NotFound(f"there is no dead letter {letter_id}; GET /admin/dead-letters lists them")
    return found[0]


def _shown(raw: bytes, size: int) -> dict[str, Any]:
    """As text if it is text, else as base64; a cut in the middle of a character is no damage."""
    whole = len(raw) == size
    found = {"rawBytes": size, "rawTruncated": not whole}
    try:
        text = getincrementaldecoder("utf-8")().decode(raw, final=whole)
        return {"raw": text, "rawEncoding": "text", **found}
    except UnicodeDecodeError:
        return {"raw": b64encode(raw).decode(), "rawEncoding": "base64", **found}
