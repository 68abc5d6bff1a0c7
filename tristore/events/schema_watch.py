"""Keeps the registry of a running process up to date with what others register."""

import asyncio
import logging
from types import TracebackType

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obey_cancellation
from tristore.db.pool import Pool
from tristore.db.wakeups import SCHEMAS, Listener
from tristore.events import schema_store
from tristore.events.registry import Registry

_log = logging.getLogger(__name__)


class SchemaWatch:
    """Looks at every wake-up and at every poll. It may be behind by that much; whoever must not
    be calls `schema_store.freshen` first."""

    def __init__(
        self, pool: Pool, registry: Registry, listener: Listener, poll_seconds: float
    ) -> None:
        self._pool = pool
        self._registry = registry
        self._listener = listener
        self._poll_seconds = poll_seconds
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "SchemaWatch":
        await self._look()
        self._task = asyncio.create_task(self._run(), name="schema-watch")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
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
