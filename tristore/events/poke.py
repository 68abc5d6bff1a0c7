"""Wakes the relay after commits, many commits with one word."""

import asyncio
import logging

import psycopg
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.db.pool import Pool
from tristore.db.wakeups import OUTBOX

# NOTIFY takes a lock that all who notify queue up for, and a round trip: not one per command.
_GATHER_SECONDS = 0.01
# Each word sets off a round of the relay, the queue, the ingress and every tail of the log, which
# cost the same for one event and for fifty: where many commands come at once, they wait for more.
_GATHER_MANY_SECONDS = 0.1
_MANY = 2

_log = logging.getLogger(__name__)


class Poke(Background):
    """A word that is lost costs the relay's poll, never an event."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._wanted = asyncio.Event()
        self._commits = 0

    def __call__(self) -> None:
        self._commits += 1
        self._wanted.set()

    async def _work(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            many = self._commits >= _MANY
            self._commits = 0
            try:
                await obedient(self._notify())
            except (psycopg.Error, PoolTimeout, OSError) as error:
                _log.debug("the relay was not woken: %s", type(error).__name__)
            await asyncio.sleep(_GATHER_MANY_SECONDS if many else _GATHER_SECONDS)

    async def _notify(self) -> None:
        async with self._pool.connection() as conn:
            await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
