"""The plan of a search: which sequence numbers to look at, whatever the length of the log.

Every combination of filters is answered by an index: that of type and source, merged over the
names a prefix stands for; of the correlation id; of the time for a short range; and for a long
one, of the sequence between which its events were received.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events.admin.jsonpath import JsonPath
from tristore.events.admin.listing import Pattern

_sql = load("tristore.events.admin", "search.sql")
# A range of this many events is looked up by time at once; a longer one by sequence.
_SHORT_RANGE = 2000
# Streams merged for a prefix; with more, the log itself is walked.
_MOST_STREAMS = 200
# How far off the two indexes of events that came early or late begin; see the migration.
_SECONDS, _MINUTES = timedelta(seconds=5), timedelta(minutes=10)


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
class Stream:
    """Sequence numbers from one query, from `low` to `high`."""

    query: str
    low: int
    high: int
    values: dict[str, Any] = field(default_factory=dict)


async def make(
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
    cursor = await conn.execute(_sql.keys_of_times, given, prepare=False)
    rows = cast(list[tuple[int]], await cursor.fetchall())
    return None if len(rows) > _SHORT_RANGE else [row[0] for row in rows]


async def _by_time(conn: Connection, wanted: Filter, low: int, high: int) -> list[Stream]:
    """The range in five parts, from low to high. What was received within seconds of its time
    lies between two numbers, and what was within minutes between two others around them; beyond
    either pair only the events that were further off can match, and those have an index."""
    begin, end = await _received(conn, wanted, low, high, _SECONDS)
    first, last = await _received(conn, wanted, low, high, _MINUTES)
    outer_begin, outer_end = min(first, begin), max(last, end)
    parts = [
        Stream("keys_off_minutes", low, outer_begin - 1),
        Stream("keys_off_seconds", outer_begin, begin - 1),
        await _stream(conn, wanted, begin, end),
        Stream("keys_off_seconds", end + 1, outer_end),
        Stream("keys_off_minutes", outer_end + 1, high),
    ]
    return [part for part in parts if part.low <= part.high]


async def _received(
    conn: Connection, wanted: Filter, low: int, high: int, off: timedelta
) -> tuple[int, int]:
    """Two numbers within `low` and `high`; if nothing lies between, the second is one less."""
    given = {"since": wanted.since, "until": wanted.until, "off": off}
    cursor = await conn.execute(_sql.received_range, given, prepare=False)
    begin, end = cast(tuple[int | None, int | None], await cursor.fetchone())
    if begin is None:
        begin = low if wanted.since is None else high + 1
    if end is None:
        end = high if wanted.until is None else low - 1
    begin = min(max(begin, low), high + 1)
    return begin, max(min(end, high), begin - 1)


async def _stream(conn: Connection, wanted: Filter, low: int, high: int) -> Stream:
    types = await _names(conn, wanted.type, _sql.types_below)
    sources = await _names(conn, wanted.source, _sql.sources_below)
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
