"""The tail: one reader of the log per process, shared by every live connection.

Readers ask for what comes after their position. Those near the head are served from memory;
one that fell behind reads the table. There is no second live path, hence no seam and no gap.
"""

import asyncio
import logging
from collections import deque
from types import TracebackType

import psycopg
from psycopg_pool import PoolTimeout

from tristore.db.pool import Pool
from tristore.db.wakeups import LOG, Listener
from tristore.errors import PositionAhead, PositionGone
from tristore.events import log
from tristore.events.log import Stored

_log = logging.getLogger(__name__)
_PAGE = 500
_KEPT = 10_000


class Tail:
    def __init__(self, pool: Pool, listener: Listener, poll_seconds: float) -> None:
        self._pool = pool
        self._listener = listener
        self._poll_seconds = poll_seconds
        self._recent: deque[Stored] = deque(maxlen=_KEPT)
        self._last = 0
        self._grown = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Tail":
        self._last = (await self._head()).last
        self._task = asyncio.create_task(self._follow(), name="tail")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def position(self, since: int | None) -> int:
        """Where a new reader starts; refuses one the log cannot serve."""
        head = await self._head()
        if since is None:
            return head.last
        if since > head.last:
            raise PositionAhead(head.last)
        if since < head.earliest - 1:
            raise PositionGone(head.earliest)
        return since

    async def after(self, position: int) -> list[Stored]:
        """The next events after `position`; waits until there is one."""
        async with self._grown:
            await self._grown.wait_for(lambda: self._last > position)
        recent = self._recent
        if recent and recent[0].ingress_sequence <= position + 1:
            start = position + 1 - recent[0].ingress_sequence  # exact: the sequence has no gaps
            return [recent[i] for i in range(start, min(start + _PAGE, len(recent)))]
        async with self._pool.connection() as conn:
            return await log.read(conn, position, _PAGE)

    async def _head(self) -> log.Head:
        async with self._pool.connection() as conn:
            return await log.head(conn)

    async def _follow(self) -> None:
        while True:
            try:
                grown = await self._read_on()
            except (psycopg.Error, PoolTimeout) as error:
                _log.warning("tail cannot read the log", extra={"error": type(error).__name__})
                grown = 0
            if grown < _PAGE:
                await self._listener.wait(LOG, self._poll_seconds)

    async def _read_on(self) -> int:
        async with self._pool.connection() as conn:
            rows = await log.read(conn, self._last, _PAGE)
        if rows:
            self._recent.extend(rows)
            async with self._grown:
                self._last = rows[-1].ingress_sequence
                self._grown.notify_all()
        return len(rows)
