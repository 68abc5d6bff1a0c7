"""Waits until batches are committed or failed: one question to Postgres for all who wait."""

import asyncio
import logging
from collections import defaultdict

import psycopg
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.db.pool import Pool
from tristore.timestore import ingest

_POLL_SECONDS = 0.1
_log = logging.getLogger(__name__)


class Settlement(Background):
    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._waiting: defaultdict[int, list[asyncio.Event]] = defaultdict(list)
        self._wanted = asyncio.Event()

    async def wait(self, batch_id: int, seconds: float) -> None:
        """Returns when the batch is settled, or after `seconds`."""
        flag = asyncio.Event()
        self._waiting[batch_id].append(flag)
        self._wanted.set()
        try:
            await asyncio.wait_for(flag.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            self._leave(batch_id, flag)

    def _leave(self, batch_id: int, flag: asyncio.Event) -> None:
        if flag in (flags := self._waiting.get(batch_id, [])):
            flags.remove(flag)
        if not flags:
            self._waiting.pop(batch_id, None)

    async def _work(self) -> None:
        while True:
            await self._wanted.wait()
            try:
                await obedient(self._look())
            except (psycopg.Error, PoolTimeout, OSError) as error:
                _log.debug("batches were not looked up: %s", type(error).__name__)
            if not self._waiting:
                self._wanted.clear()
            await asyncio.sleep(_POLL_SECONDS)

    async def _look(self) -> None:
        if not self._waiting:
            return
        async with self._pool.connection() as conn:
            done = await ingest.settled(conn, list(self._waiting))
        for batch_id in done:
            for flag in self._waiting.pop(batch_id, []):
                flag.set()
