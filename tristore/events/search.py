"""Finding events: pages of the log in its order, at a cost that does not grow with the log.

A page is read in two steps: an index gives the next sequence numbers of a stream (a type, a
source, a correlation id, the whole log), then those events are fetched and held against every
filter. A stream that matches seldom is examined for a limited time; the page then says how many
events were examined, and its cursor goes on from there.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidQuery
from tristore.events import listing, log
from tristore.events.jsonpath import JsonPath
from tristore.events.listing import Pattern
from tristore.events.log import Stored

_descending = load("tristore.events", "search.sql")
_ascending = SimpleNamespace(
    **{name: text.replace(" DESC", " ASC") for name, text in vars(_descending).items()}
)
SCAN_SECONDS = 0.5
_MOST_SCANNED = 4000
# A range of this many events is looked up by time at once; a longer one by sequence.
_SHORT_RANGE = 2000
# Streams merged for a prefix; with more, the log itself is walked.
_MOST_STREAMS = 200


@dataclass(frozen=True, slots=True)
class Filter:
    """`since` and `until` bound the time of the event, `first` and `last` its sequence."""

    type: Pattern | None = None
    source: Pattern | None = None
    correlation_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    json_path: JsonPath | None = None
    first: int | None = None
    last: int | None = None
    ascending: bool = False

    def values(self) -> dict[str, Any]:
        path = self.json_path
        return {
            "type": self.type and self.type.exact,
            "type_prefix": self.type and self.type.prefix,
            "source": self.source and self.source.exact,
            "source_prefix": self.source and self.source.prefix,
            "correlation_id": self.correlation_id,
            "since": self.since,
            "until": self.until,
            "path": path and list(path.keys),
            "operator": path and path.operator,
            "value": path and path.value,
        }


@dataclass(frozen=True, slots=True)
class Page:
    """`scanned` is set when the page ends early because its time was up."""

    rows: list[Stored]
    next_cursor: str | None
    scanned: int | None = None

    def to_json(self) -> dict[str, Any]:
        found = {"items": [row.to_json() for row in self.rows], "nextCursor": self.next_cursor}
        return found if self.scanned is None else {**found, "scanned": self.scanned}


@dataclass(frozen=True, slots=True)
class Stream:
    """Sequence numbers from one query, from `low` to `high`."""

    query: str
    low: int
    high: int
    values: dict[str, Any] = field(default_factory=dict)


async def find(conn: Connection, wanted: Filter, limit: int, cursor: str | None) -> Page:
    head = await log.head(conn)
    mark = listing.fingerprint(wanted)
    after = None if cursor is None else listing.read_number(cursor, head.epoch, mark)
    low, high = _bounds(head, wanted, after)
    walk = _Walk(conn, wanted, limit)
    await walk.run(await _plan(conn, wanted, low, high))
    position = walk.position
    following = None if position is None else listing.write_cursor(head.epoch, mark, position)
    return Page(walk.rows[:limit], following, walk.scanned if walk.cut else None)


async def by_id(conn: Connection, event_id: str) -> Stored | None:
    if "\x00" in event_id:
        return None
    cursor = conn.cursor(row_factory=class_row(Stored))
    return await (await cursor.execute(_descending.by_id, {"id": event_id})).fetchone()


def _bounds(head: log.Head, wanted: Filter, after: int | None) -> tuple[int, int]:
    low, high = max(head.earliest, wanted.first or 0), head.last
    if wanted.last is not None:
        high = min(high, wanted.last)
    if after is not None and after > head.last:
        raise InvalidQuery("that cursor lies ahead of the log; start without one")
    if after is None:
        return low, high
    return (max(low, after + 1), high) if wanted.ascending else (low, min(high, after - 1))


class _Walk:
    """Examines streams in order until the page is full, they end, or time is up."""

    def __init__(self, conn: Connection, wanted: Filter, limit: int) -> None:
        self._conn = conn
        self._wanted = wanted
        self._limit = limit
        self._sql = _ascending if wanted.ascending else _descending
        self._deadline = time.monotonic() + SCAN_SECONDS
        self.rows: list[Stored] = []
        self.scanned = 0
        self.cut = False
        self.position: int | None = None

    async def run(self, streams: Sequence[Stream | list[int]]) -> None:
        for stream in streams:
            if isinstance(stream, list):
                await self._examine(stream)
            else:
                await self._follow(stream)
            if self.position is not None:
                return

    async def _follow(self, stream: Stream) -> None:
        low, high = stream.low, stream.high
        scan = self._limit + 1
        while low <= high:
            given = {**stream.values, "low": low, "high": high, "scan": scan}
            keys = await self._keys(stream.query, given)
            await self._examine(keys)
            if self.position is not None or len(keys) < scan:
                return
            if time.monotonic() > self._deadline:
                self.position, self.cut = keys[-1], True
                return
            low, high = (keys[-1] + 1, high) if self._wanted.ascending else (low, keys[-1] - 1)
            scan = max(scan, min(4 * scan, _MOST_SCANNED))

    async def _keys(self, query: str, given: dict[str, Any]) -> list[int]:
        # Never prepared: a plan that does not know the limit may sort the whole stream.
        cursor = await self._conn.execute(getattr(self._sql, query), given, prepare=False)
        return [row[0] for row in cast(list[tuple[int]], await cursor.fetchall())]

    async def _examine(self, keys: list[int]) -> None:
        if not keys:
            return
        self.scanned += len(keys)
        wanted = self._limit + 1 - len(self.rows)
        given = {**self._wanted.values(), "keys": keys, "limit": wanted}
        cursor = self._conn.cursor(row_factory=class_row(Stored))
        await cursor.execute(self._sql.fetch, given, prepare=False)
        self.rows += await cursor.fetchall()
        if len(self.rows) > self._limit:
            self.position = self.rows[self._limit - 1].ingress_sequence


async def _plan(
    conn: Connection, wanted: Filter, low: int, high: int
) -> Sequence[Stream | list[int]]:
    if wanted.correlation_id is not None:
        values = {"correlation_id": wanted.correlation_id}
        return [Stream("keys_by_correlation", low, high, values)]
    if wanted.since is None and wanted.until is None:
        return [await _stream(conn, wanted, low, high)]
    if (keys := await _short_range(conn, wanted)) is not None:
        inside = [key for key in keys if low <= key <= high]
        return [inside]
    streams = await _by_time(conn, wanted, low, high)
    return streams if wanted.ascending else streams[::-1]


async def _short_range(conn: Connection, wanted: Filter) -> list[int] | None:
    given = {"since": wanted.since, "until": wanted.until, "most": _SHORT_RANGE + 1}
    cursor = await conn.execute(_descending.keys_of_times, given, prepare=False)
    rows = cast(list[tuple[int]], await cursor.fetchall())
    return None if len(rows) > _SHORT_RANGE else [row[0] for row in rows]


async def _by_time(conn: Connection, wanted: Filter, low: int, high: int) -> list[Stream]:
    """What was received near its time lies between two numbers; the rest has an index."""
    given = {"since": wanted.since, "until": wanted.until}
    cursor = await conn.execute(_descending.received_range, given, prepare=False)
    begin, end = cast(tuple[int | None, int | None], await cursor.fetchone())
    if begin is None:
        begin = low if wanted.since is None else high + 1
    if end is None:
        end = high if wanted.until is None else low - 1
    # Two numbers that cross mean that nothing was received near the range: all of it is off time.
    begin, end = max(begin, low), min(end, high)
    if begin > end:
        return [Stream("keys_off_time", low, high)]
    return [
        Stream("keys_off_time", low, begin - 1),
        await _stream(conn, wanted, begin, end),
        Stream("keys_off_time", end + 1, high),
    ]


async def _stream(conn: Connection, wanted: Filter, low: int, high: int) -> Stream:
    types = await _names(conn, wanted.type, _descending.types_below)
    sources = await _names(conn, wanted.source, _descending.sources_below)
    if types is not None and sources is not None and len(types) * len(sources) <= _MOST_STREAMS:
        pairs = [(one, other) for one in types for other in sources]
        both = {"types": [p[0] for p in pairs], "sources": [p[1] for p in pairs]}
        return Stream("keys_by_type_and_source", low, high, both)
    fewest = min(_choices(types, sources), key=lambda choice: len(choice[1]), default=None)
    if fewest is None:
        return Stream("keys", low, high)
    name, found = fewest
    return Stream(f"keys_by_{name}", low, high, {f"{name}s": found})


def _choices(types: list[str] | None, sources: list[str] | None) -> Iterator[tuple[str, list[str]]]:
    for name, found in (("type", types), ("source", sources)):
        if found is not None:
            yield name, found


async def _names(conn: Connection, pattern: Pattern | None, query: str) -> list[str] | None:
    """The names a pattern stands for; None for all, or for more than can be merged."""
    if pattern is None:
        return None
    if not pattern.is_prefix:
        return [pattern.text]
    # "/" is the character after ".", so the range holds just the names below the prefix.
    given = {"low": pattern.text, "high": pattern.text[:-1] + "/", "most": _MOST_STREAMS + 1}
    rows = cast(list[tuple[str]], await (await conn.execute(query, given)).fetchall())
    return None if len(rows) > _MOST_STREAMS else [row[0] for row in rows]
