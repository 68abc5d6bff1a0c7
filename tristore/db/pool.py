"""Connections to Postgres, shared by the tasks of one process."""

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

Connection = AsyncConnection[tuple[object, ...]]
Pool = AsyncConnectionPool[Connection]

# Longest wait for a connection: a caller hears "unavailable" well within five seconds.
_WAIT_SECONDS = 3.0


def make_pool(database_url: str, *, name: str, max_size: int = 10) -> Pool:
    """A closed pool; open it with `async with`. Its connections commit statement by statement
    unless a `conn.transaction()` says otherwise."""
    return AsyncConnectionPool(
        database_url,
        kwargs={"autocommit": True, "application_name": f"tristore-{name}", "connect_timeout": 3},
        name=name,
        min_size=1,
        max_size=max_size,
        timeout=_WAIT_SECONDS,
        reconnect_timeout=30,
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
