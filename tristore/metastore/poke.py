"""Tells the relay about committed events, once for many commits that come together."""

import asyncio
import logging

import psycopg
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.db.pool import Pool
from tristore.db.wakeups import OUTBOX

# NOTIFY makes commits queue up behind one another, so hundreds a second share one.
_PAUSE_SECONDS = 0.005
_log = logging.getLogger(__name__)


class Poke(Background):
    """Only a hint: a poke that is lost costs the relay's poll, never an event."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._wanted = asyncio.Event()

    def poke(self) -> None:
        self._wanted.set()

    async def _work(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await obedient(self._notify())
            except (psycopg.Error, PoolTimeout) as error:
                _log.debug("the relay was not told: %s", type(error).__name__)
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _notify(self) -> None:
        async with self._pool.connection() as conn:
            await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
