"""Finding events: pages of the log in its order, at a cost that does not grow with the log.

A page is read in two steps: an index gives the next sequence numbers of a stream (a type, a
source, a correlation id, the whole log), then those events are fetched and held against every
filter. A stream that matches seldom is examined for a limited time; the page then says how many
events were examined, and its cursor goes on from there.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import orjson
from psycopg.rows import class_row
from psycopg.types.json import set_json_loads

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidQuery
from tristore.events import log
from tristore.events.admin import listing, search_plan
from tristore.events.admin.search_plan import Filter, Stream
from tristore.events.log import Stored

_descending = load("tristore.events.admin", "search.sql")
_ascending = SimpleNamespace(
    **{name: text.replace(" DESC", " ASC") for name, text in vars(_descending).items()}
)
SCAN_SECONDS = 0.5
_MOST_SCANNED = 4000


@dataclass(frozen=True, slots=True)
class Page:
    """`scanned` is set when the page ends early because its time was up."""

    rows: list[Stored]
    next_cursor: str | None
    scanned: int | None = None

    def to_json(self) -> dict[str, Any]:
        found = {"items": [row.to_json() for row in self.rows], "nextCursor": self.next_cursor}
        return found if self.scanned is None else {**found, "scanned": self.scanned}


async def find(conn: Connection, wanted: Filter, limit: int, cursor: str | None) -> Page:
    head = await log.head(conn)
    mark = listing.fingerprint(wanted)
    after = None if cursor is None else listing.read_number(cursor, head.epoch, mark)
    low, high = _bounds(head, wanted, after)
    walk = _Walk(conn, wanted, limit)
    await walk.run(await search_plan.make(conn, wanted, low, high))
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
        set_json_loads(orjson.loads, cursor)  # the standard parser takes as long as the query
        await cursor.execute(self._sql.fetch, given, prepare=False)
        self.rows += await cursor.fetchall()
        if len(self.rows) > self._limit:
            self.position = self.rows[self._limit - 1].ingress_sequence
