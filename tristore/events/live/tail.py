"""The tail: one reader of the log per process, shared by every live connection.

Readers are positions. Those near the head are served from memory, one that fell behind reads the
table. Memory grows by what follows it without a gap, be it read from the table or told by the
statement that stored it; readers know no difference, hence no seam.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator

import orjson
import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.rows import class_row
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obey_cancellation
from tristore.db.pool import Pool
from tristore.db.queries import load
from tristore.db.wakeups import LOG, Listener
from tristore.errors import PositionAhead, PositionGone
from tristore.events import log
from tristore.events.live.audience import Audience, Reader
from tristore.events.live.frame import Frame
from tristore.events.live.notice import frames_after
from tristore.events.log import Stored

_sql = load("tristore.events.live", "tail.sql")
_log = logging.getLogger(__name__)
_PAGE = 500
_PAGE_BYTES = 512 * 1024
_KEPT_BYTES = 16 * 1024 * 1024
# How often a reader is told its position while nothing it wants happens.
_POSITION_SECONDS = 2.0
_RETRY_SECONDS = 0.5


class Tail(Background):
    def __init__(self, pool: Pool, listener: Listener, poll_seconds: float) -> None:
        self._pool = pool
        self._listener = listener
        self._poll_seconds = poll_seconds
        self._head = log.Head(0, 1, "")
        self._recent = _Recent()
        self._audience = Audience()
        self._told_at = 0.0
        self._asked_at = 0.0

    @property
    def last(self) -> int:
        return self._head.last

    @property
    def readers(self) -> int:
        return len(self._audience)

    async def _begin(self) -> None:
        self._head = await self._ask_head()
        self._listener.read(LOG, self._hear)

    def _hear(self, notice: str) -> bool:
        """Takes what a wake-up carries, if that is what comes next."""
        frames = frames_after(self._head, notice) if self._audience and notice else None
        if frames:
            self._grow(frames)
        return bool(frames)

    async def position(self, since: int | None) -> int:
        """Where a new reader starts; refuses one the log cannot serve."""
        head = await self._ask_head()
        if since is None:
            return head.last
        if since > head.last:
            raise PositionAhead(head.last)
        if since < head.earliest - 1:
            raise PositionGone(head.earliest)
        return since

    async def pages(
        self, reader: Reader, idle_seconds: float | None = None
    ) -> AsyncGenerator[tuple[list[Frame], int]]:
        """What the reader wants, page by page, with the position reached; nothing but the
        position where none was wanted, and at least every `idle_seconds`."""
        self._audience.add(reader)
        try:
            while True:
                if reader.position >= self.last and not await reader.sleep(idle_seconds):
                    reader.position = max(reader.position, self.last)
                if reader.failure:
                    raise reader.failure
                try:
                    page = await self._page(reader.position)
                except (psycopg.Error, PoolTimeout):
                    obey_cancellation()
                    await asyncio.sleep(_RETRY_SECONDS)  # late, never wrong; `_work` reports it
                    continue
                if page:
                    reader.position = page[-1].sequence
                yield [frame for frame in page if reader.wanted(frame.type)], reader.position
        finally:
            self._audience.discard(reader)

    async def _page(self, position: int) -> list[Frame]:
        if position >= self.last:
            return []
        if (page := self._recent.after(position)) is not None:
            return page
        page = await self._read(position)
        if not page or page[0].sequence != position + 1:
            raise PositionGone((await self._ask_head()).earliest)
        return page

    async def _read(self, after: int) -> list[Frame]:
        async with self._pool.connection() as conn:
            cursor = conn.cursor(row_factory=class_row(Stored))
            cursor.adapters.register_loader("jsonb", _AsItIs)
            bounds = {"after": after, "limit": _PAGE, "bytes": _PAGE_BYTES}
            await cursor.execute(_sql.page, bounds)
            return [Frame.of(row) for row in await cursor.fetchall()]

    async def _ask_head(self) -> log.Head:
        async with self._pool.connection() as conn:
            return await log.head(conn)

    async def _work(self) -> None:
        while True:
            try:
                grown = await self._read_on()
            except (psycopg.Error, PoolTimeout) as error:
                obey_cancellation()
                _log.warning("tail cannot read the log", extra={"error": type(error).__name__})
                grown = False
            if time.monotonic() > self._told_at + _POSITION_SECONDS:
                self._told_at = time.monotonic()
                self._audience.tell(self.last)
            if not grown:
                await self._listener.wait(LOG, self._poll_seconds)

    async def _read_on(self) -> bool:
        """True if there may be more. Without readers nothing is read but the head."""
        if self._audience and (frames := await self._read(self.last)):
            full = _is_full(frames)
            # A wake-up may have brought some of them meanwhile.
            self._grow([frame for frame in frames if frame.sequence > self.last])
            if full:
                return True
            # What was committed after this was read makes a wake-up of its own. Only now and
            # then, for a log that never rests, the head is looked at all the same.
            if time.monotonic() < self._asked_at + _POSITION_SECONDS:
                return False
        await self._look_at_head()
        return False

    def _grow(self, frames: list[Frame]) -> None:
        if frames:
            self._recent.add(frames)
            self._head = log.Head(frames[-1].sequence, self._head.earliest, self._head.epoch)
            self._audience.wake(frames)

    async def _look_at_head(self) -> None:
        known = self.last  # wake-ups may bring more while the question is under way
        head = await self._ask_head()
        self._asked_at = time.monotonic()
        changed = head.epoch != self._head.epoch or head.last < known
        if changed or not self._audience:
            self._recent, self._head = _Recent(), head
        if changed:
            # A restore, say: no reader's position means anything any more.
            _log.warning("the log's history changed", extra={"last": head.last})
            self._audience.fail(PositionAhead(head.last))


def _is_full(frames: list[Frame]) -> bool:
    """Whether a page was perhaps cut short: by number, or by bytes, of which an event's payload
    may take half."""
    return len(frames) >= _PAGE or sum(len(frame.json) for frame in frames) >= _PAGE_BYTES // 4


class _Recent:
    """The newest frames, without a gap, as many as fit."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._bytes = 0

    def add(self, frames: list[Frame]) -> None:
        self._frames += frames
        self._bytes += sum(len(frame.json) for frame in frames)
        drop = 0
        while self._bytes > _KEPT_BYTES and drop < len(self._frames) - 1:
            self._bytes -= len(self._frames[drop].json)
            drop += 1
        del self._frames[:drop]

    def after(self, position: int) -> list[Frame] | None:
        """The next page, or None if its start is no longer here."""
        if not self._frames or position + 1 < self._frames[0].sequence:
            return None
        start = position + 1 - self._frames[0].sequence  # exact: the sequence has no gaps
        page, size = self._frames[start : start + _PAGE], 0
        for count, frame in enumerate(page):
            size += len(frame.json)
            if size > _PAGE_BYTES:
                return page[: max(count, 1)]
        return page


class _AsItIs(Loader):
    """JSON that is only passed on is not parsed on the way."""

    def load(self, data: Buffer) -> orjson.Fragment:
        return orjson.Fragment(bytes(data))
