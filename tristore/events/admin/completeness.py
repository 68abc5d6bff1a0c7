"""The ledger: every outbox row is stored, dead-lettered or in flight, or its id is named; and every
stored event has reached the datasets, and if it is of a file or directory its record.

Events put straight into the queue have no outbox row to be missing from; they are counted in a
column of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from psycopg.rows import class_row
from pydantic.alias_generators import to_camel

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidQuery
from tristore.events.admin import dataset_column, listing
from tristore.events.admin.dataset_column import Column
from tristore.events.envelope import time_text

_sql = load("tristore.events.admin", "completeness.sql")
DEFAULT_WINDOW = timedelta(hours=1)
LONGEST_WINDOW = timedelta(days=7)
NAMED = 100
COUNTS = ("outbox", "stored", "dead_lettered", "in_flight", "missing", "queue_published")
# The metastore's column: node events = in view + waiting + refused + missing.
VIEW = {
    "nodeEvents": "node_events",
    "inView": "in_view",
    "waiting": "view_waiting",
    "refused": "view_refused",
    "missing": "view_missing",
}


@dataclass(frozen=True, slots=True)
class Minute:
    minute: datetime
    source: str
    outbox: int
    stored: int
    dead_lettered: int
    in_flight: int
    missing: int
    queue_published: int
    node_events: int
    in_view: int
    view_waiting: int
    view_refused: int
    view_missing: int
    missing_ids: list[str]

    def to_json(self) -> dict[str, Any]:
        named = {"minute": time_text(self.minute), "source": self.source}
        return {**named, **{to_camel(name): getattr(self, name) for name in COUNTS}}


@dataclass(frozen=True, slots=True)
class Ledger:
    """`begin` and `end` are what was looked at; it may be less than was asked for."""

    begin: datetime
    end: datetime
    covers_from: datetime
    note: str | None
    minutes: list[Minute]
    followed: bool  # whether there is a sync that the metastore's column can be held to
    datasets: Column

    @property
    def verdict(self) -> str:
        missing = sum(minute.missing + minute.view_missing for minute in self.minutes)
        missing += self.datasets.missing
        open_rows = sum(minute.in_flight for minute in self.minutes)
        waiting = sum(minute.view_waiting for minute in self.minutes)
        if missing:
            return f"broken, {missing} missing"
        if not open_rows and not waiting and not self.datasets.waiting:
            return "closed, 0 missing"
        late = f", {waiting} not in the metastore yet" if waiting else ""
        late += (
            f", {self.datasets.waiting} not in the datasets yet" if self.datasets.waiting else ""
        )
        return f"open, 0 missing, {open_rows} in flight{late}"

    def to_json(self, limit: int, cursor: str | None) -> dict[str, Any]:
        """Totals and missing ids are those of the whole window; the minutes come in pages."""
        start = 0 if cursor is None else self._place(cursor)
        shown = self.minutes[start : start + limit]
        more = len(self.minutes) > start + limit
        window = {"from": self.begin, "to": self.end, "coversFrom": self.covers_from}
        return {
            "window": {name: time_text(value) for name, value in window.items()},
            "note": self.note,
            "verdict": self.verdict,
            "totals": self._totals(),
            "metastore": self._view(self.minutes),
            "datasets": self.datasets.to_json(),
            "minutes": [self._minute(minute) for minute in shown],
            "missingIds": self._missing_ids()[:NAMED],
            "nextCursor": listing.write_cursor("", "ledger", _key(shown[-1])) if more else None,
        }

    def _minute(self, minute: Minute) -> dict[str, Any]:
        datasets = self.datasets.of(minute.minute, minute.source).to_json()
        return {**minute.to_json(), "metastore": self._view([minute]), "datasets": datasets}

    def _missing_ids(self) -> list[str]:
        named = [each for minute in self.minutes for each in minute.missing_ids]
        return named + [each for each in self.datasets.missing_ids if each not in named]

    def _totals(self) -> dict[str, int]:
        return {
            to_camel(name): sum(getattr(minute, name) for minute in self.minutes) for name in COUNTS
        }

    def _view(self, minutes: Sequence[Minute]) -> dict[str, Any]:
        if not self.followed:
            return {"state": "off"}
        counts = {
            shown: sum(getattr(minute, name) for minute in minutes) for shown, name in VIEW.items()
        }
        return {"state": "on", **counts}

    def _place(self, cursor: str) -> int:
        after = listing.read_cursor(cursor, "", "ledger")
        if not isinstance(after, str):
            raise InvalidQuery("that cursor was not made here; start without one")
        return sum(_key(minute) <= after for minute in self.minutes)


async def read(
    conn: Connection,
    since: datetime | None,
    until: datetime | None,
    records_of_nodes: str | None = None,
    datasets: Sequence[str] = (),
) -> Ledger:
    """The last hour, or the window asked for, cut to what is kept and to a week.

    `records_of_nodes` is the namespace in which every node has its record; None where the sync is
    switched off. `datasets` are those that the log should feed.
    """
    cursor = await conn.execute(_sql.covers)
    now, covers_from = cast(tuple[datetime, datetime], await cursor.fetchone())
    end = min(until or now, now)
    begin = since or end - DEFAULT_WINDOW
    if end <= covers_from:
        raise InvalidQuery(
            f"nothing before {time_text(covers_from)} is kept; ask for a later window"
        )
    begin, note = _clip(begin, end, covers_from)
    rows = conn.cursor(row_factory=class_row(Minute))
    given = {"since": begin, "until": end, "named": NAMED, "namespace": records_of_nodes}
    await rows.execute(_sql.minutes, given, prepare=False)
    followed = records_of_nodes is not None
    minutes = await rows.fetchall()
    column = await dataset_column.read(conn, begin, end, datasets, NAMED)
    return Ledger(begin, end, covers_from, note, minutes, followed, column)


def _clip(begin: datetime, end: datetime, covers_from: datetime) -> tuple[datetime, str | None]:
    notes = []
    if begin < covers_from:
        begin = covers_from
        notes.append(f"older than {time_text(covers_from)} is not kept; the window begins there")
    if end - begin > LONGEST_WINDOW:
        begin = end - LONGEST_WINDOW
        notes.append(f"a window is at most {LONGEST_WINDOW.days} days; it ends where you asked")
    return begin, "; ".join(notes) or None


def _key(minute: Minute) -> str:
    return f"{minute.minute.astimezone(UTC).isoformat()} {minute.source}"
