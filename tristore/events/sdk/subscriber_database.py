"""A subscriber's feed by database URL: pages of the log, and transactions for its effects."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obey_cancellation
from tristore.db.pool import Connection, Pool, make_pool
from tristore.db.wakeups import LOG, Listener
from tristore.errors import Unavailable
from tristore.events import cursors
from tristore.events.cursors import Cursor, From, Page


class DatabaseFeed:
    def __init__(self, database_url: str, name: str, types: tuple[str, ...], from_: From) -> None:
        self._name = name
        self._types = types
        self._from: From = from_
        self._stack = AsyncExitStack()
        self._pool: Pool = make_pool(database_url, name="subscriber", max_size=2)
        self._listener = Listener(database_url, [LOG])
        self._cursor: Cursor | None = None

    async def open(self) -> None:
        await self._stack.enter_async_context(self._pool)
        await self._stack.enter_async_context(self._listener)

    async def close(self) -> None:
        await self._stack.aclose()

    async def next(self, limit: int, wait: float) -> Page:
        """The cursor is kept in memory between pages: what is read but not yet acknowledged is
        not read again by this process."""
        page, cursor = await self._read(limit)
        if not page.events and page.through == cursor.sequence:
            await self._listener.wait(LOG, wait)
            page, cursor = await self._read(limit)
        self._cursor = replace(cursor, sequence=page.through)
        return page

    async def ack(self, sequence: int) -> None:
        async with self._connection() as conn:
            await cursors.advance(conn, self._name, sequence)

    async def forget(self) -> None:
        self._cursor = None
        async with self._connection() as conn:
            await cursors.forget(conn, self._name)

    @asynccontextmanager
    async def handling(self, sequence: int) -> AsyncIterator[Connection | None]:
        """A transaction that moves the cursor to `sequence` when it commits; None if another
        reader of this name has handled the event. Errors of the body pass unchanged."""
        async with AsyncExitStack() as stack:
            with _translated():
                conn = await stack.enter_async_context(self._pool.connection())
                await stack.enter_async_context(conn.transaction())
                fresh = await cursors.lock(conn, self._name) < sequence
            yield conn if fresh else None
            if fresh:
                await cursors.advance(conn, self._name, sequence)

    async def _read(self, limit: int) -> tuple[Page, Cursor]:
        async with self._connection() as conn:
            if self._cursor is None:
                self._cursor = await cursors.start(conn, self._name, self._types, self._from)
            return await cursors.read(conn, self._name, self._cursor, limit), self._cursor

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        with _translated():
            async with self._pool.connection() as conn:
                yield conn


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        obey_cancellation()
        raise Unavailable(f"Postgres is away: {type(error).__name__}") from error
