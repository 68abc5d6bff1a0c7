"""Connections to Postgres, shared by the tasks of one process."""

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

Connection = AsyncConnection[tuple[object, ...]]
Pool = AsyncConnectionPool[Connection]

# Longest wait for a connection: a caller hears "unavailable" well within five seconds.
_WAIT_SECONDS = 3.0


def make_pool(database_url: str, *, name: str, max_size: int = 10, checked: bool = True) -> Pool:
    """A closed pool; open it with `async with`. Its connections commit statement by statement
    unless a `conn.transaction()` says otherwise.

    `checked` connections are tried before they are handed out, so that a request does not meet
    one that died; a worker that tries again anyway saves the round trip.
    """
    return AsyncConnectionPool(
        database_url,
        kwargs={"autocommit": True, "application_name": f"tristore-{name}", "connect_timeout": 3},
        name=name,
        min_size=1,
        max_size=max_size,
        timeout=_WAIT_SECONDS,
        reconnect_timeout=30,
        configure=_configure,
        check=_check if checked else None,
        open=False,
    )


@asynccontextmanager
async def spendable(pool: Pool) -> AsyncIterator[Connection]:
    """A connection for pipelines, which is not used again after an error: psycopg may take a
    statement of a failed pipeline for prepared, and that connection would then fail for ever."""
    async with pool.connection() as conn:
        try:
            yield conn
        except psycopg.Error:
            await conn.close()
            raise


async def _check(conn: Connection) -> None:
    """Raises if the server has gone. One that has leaves an end of file to be read; while there is
    nothing to read, the round trip of asking it is saved."""
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    if poll.poll(0):
        await AsyncConnectionPool.check_connection(conn)


async def _configure(conn: Connection) -> None:
    # A process that is stopped in the middle of a transaction must not hold its locks for ever,
    # least of all the log's head row. Not a start-up option: poolers refuse those.
    await conn.execute("SET idle_in_transaction_session_timeout = '60s'")
