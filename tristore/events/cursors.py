"""Cursors: how far each durable reader of the log has come, kept beside the log."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from psycopg.rows import class_row, dict_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import EpochChanged, InvalidQuery, NotFound, PositionAhead, PositionGone
from tristore.events import log
from tristore.events.log import Stored
from tristore.events.type_filter import TypeFilter

_sql = load("tristore.events", "cursors.sql")

From = Literal["beginning", "now"]
# Names of the platform's own readers; nobody moves them from outside.
RESERVED = "tristore."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WINDOW = 20_000
_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cursor:
    """Everything up to `sequence` is handled, in the history of the log named by `epoch`."""

    sequence: int
    epoch: str
    types: list[str]


@dataclass(frozen=True, slots=True)
class Page:
    """Events in order; once they are handled, everything up to `through` is."""

    events: list[Stored]
    through: int


def check_name(consumer: str) -> str:
    if not _NAME.fullmatch(consumer):
        raise InvalidQuery(
            "the name of a subscription has 1 to 100 letters, digits, dots, dashes or underscores"
        )
    return consumer


async def start(
    conn: Connection, consumer: str, types: Sequence[str] = (), from_: From = "beginning"
) -> Cursor:
    """The reader's cursor; a new one stands at the beginning of what is kept, or at the end."""
    wanted = list(TypeFilter(types).patterns) or ["*"]
    cursor = conn.cursor(row_factory=class_row(Cursor))
    await cursor.execute(_sql.find, {"consumer": consumer})
    if (found := await cursor.fetchone()) and found.types == wanted:
        return found
    given = {"consumer": check_name(consumer), "types": wanted, "now": from_ == "now"}
    made = await (await cursor.execute(_sql.start, given)).fetchone()
    assert made is not None
    return made


async def read(conn: Connection, consumer: str, cursor: Cursor, limit: int) -> Page:
    """What comes after the cursor. An empty page may still reach further than the cursor."""
    given = {
        "after": cursor.sequence,
        "window": _WINDOW,
        "types": [_like(pattern) for pattern in cursor.types],
        "limit": limit,
        "bytes": _PAGE_BYTES,
    }
    found = await conn.cursor(row_factory=dict_row).execute(_sql.page, given)
    rows: list[dict[str, Any]] = await found.fetchall()
    heads = [log.Head(row.pop("last"), row.pop("earliest"), row.pop("epoch")) for row in rows]
    _check(consumer, cursor, heads[0])
    events = [Stored(**row) for row in rows if row["id"] is not None]
    return Page(events, _through(cursor, heads[0], events))


async def advance(conn: Connection, consumer: str, sequence: int) -> int:
    """Everything up to `sequence` is handled; returns where the cursor stands now.

    In the transaction of the effect it makes the effect happen exactly once. Moving back is
    ignored, so that a late reader of the same name does no harm.
    """
    given = {"consumer": consumer, "sequence": sequence}
    if row := await (await conn.execute(_sql.advance, given)).fetchone():
        return int(str(row[0]))
    raise await _refusal(conn, consumer)


async def lock(conn: Connection, consumer: str) -> int:
    """Where the cursor stands; it stands there until the transaction ends."""
    row = await (await conn.execute(_sql.lock, {"consumer": consumer})).fetchone()
    if row is None:
        raise _unknown(consumer)
    return int(str(row[0]))


async def note(conn: Connection, consumer: str, error: str | None) -> None:
    """Tells operators why the reader does not get on; None: it does."""
    await conn.execute(_sql.note, {"consumer": consumer, "error": error})


async def forget(conn: Connection, consumer: str) -> None:
    """The next start begins anew, and retention no longer waits for this reader."""
    if not (await conn.execute(_sql.forget, {"consumer": consumer})).rowcount:
        raise _unknown(consumer)


def _through(cursor: Cursor, head: log.Head, events: list[Stored]) -> int:
    # A page that is not empty may have been cut, by number or by size.
    if events:
        return events[-1].ingress_sequence
    return max(cursor.sequence, min(cursor.sequence + _WINDOW, head.last))


def _check(consumer: str, cursor: Cursor, head: log.Head) -> None:
    if cursor.epoch != head.epoch:
        raise _other_history(consumer)
    if cursor.sequence > head.last:
        raise PositionAhead(head.last)
    if cursor.sequence < head.earliest - 1:
        raise PositionGone(head.earliest)


async def _refusal(conn: Connection, consumer: str) -> Exception:
    cursor = conn.cursor(row_factory=class_row(Cursor))
    found = await (await cursor.execute(_sql.find, {"consumer": consumer})).fetchone()
    head = await log.head(conn)
    if found is None:
        return _unknown(consumer)
    return PositionAhead(head.last) if found.epoch == head.epoch else _other_history(consumer)


def _unknown(consumer: str) -> NotFound:
    return NotFound(f"there is no subscription {consumer}; it begins with its first `next`")


def _other_history(consumer: str) -> EpochChanged:
    return EpochChanged(
        f"the log was restored since {consumer} last read it, so its position means nothing now; "
        "forget the subscription and read again from the beginning"
    )


def _like(pattern: str) -> str:
    # A backslash cannot stand in a pattern; an underscore can, and means one character in LIKE.
    escaped = pattern.replace("_", r"\_")
    return escaped[:-1] + "%" if escaped.endswith("*") else escaped
