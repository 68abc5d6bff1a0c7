"""Keeps the registry of a running process up to date with what others register."""

import logging

import psycopg
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obey_cancellation
from tristore.db.pool import Pool
from tristore.db.wakeups import SCHEMAS, Listener
from tristore.events.registry import schema_store
from tristore.events.registry.registry import Registry

_log = logging.getLogger(__name__)


class SchemaWatch(Background):
    """Looks at every wake-up and at every poll. It may be behind by that much; whoever must not
    be calls `schema_store.freshen` first."""

    def __init__(
        self, pool: Pool, registry: Registry, listener: Listener, poll_seconds: float
    ) -> None:
        self._pool = pool
        self._registry = registry
        self._listener = listener
        self._poll_seconds = poll_seconds

    async def _begin(self) -> None:
        await self._look()

    async def _work(self) -> None:
        while True:
            await self._listener.wait(SCHEMAS, self._poll_seconds)
            await self._look()

    async def _look(self) -> None:
        try:
            await learned(self._pool, self._registry)
        except (psycopg.Error, PoolTimeout) as error:
            obey_cancellation()
            _log.debug("schemas not looked up: %s", type(error).__name__)


async def learned(pool: Pool, registry: Registry) -> bool:
    """Brings the registry up to date; whether there was anything it did not know."""
    before = registry.revision
    async with pool.connection() as conn:
        return await schema_store.freshen(conn, registry) != before
