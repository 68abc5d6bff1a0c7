"""Forgets the answers to old writes, a bounded number at a time."""

import asyncio
import logging

import psycopg
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.db.pool import Pool
from tristore.metastore import idempotency

_EVERY_SECONDS = 60.0
_log = logging.getLogger(__name__)


class Forgetting(Background):
    def __init__(self, pool: Pool, keep_hours: float) -> None:
        self._pool = pool
        self._keep_hours = keep_hours

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            try:
                await obedient(self._forget())
            except (psycopg.Error, PoolTimeout) as error:
                _log.warning("old answers stay for now", extra={"error": str(error)[:200]})

    async def _forget(self) -> None:
        async with self._pool.connection() as conn:
            await idempotency.sweep(conn, self._keep_hours)
