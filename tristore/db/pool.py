"""Connections to Postgres, shared by the tasks of one process."""

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
        check=AsyncConnectionPool.check_connection if checked else None,
        open=False,
    )


async def _configure(conn: Connection) -> None:
    # A process that is stopped in the middle of a transaction must not hold its locks for ever,
    # least of all the log's head row. Not a start-up option: poolers refuse those.
    await conn.execute("SET idle_in_transaction_session_timeout = '60s'")
