"""A connection whose statements end in time, for questions that come from outside."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from tristore.db.pool import Connection, Pool
from tristore.errors import TooBroad

# Compiling a query costs more than any page does; the planner cannot know that it will be short.
_LIMITS = "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true)"


@asynccontextmanager
async def connection_within(
    pool: Pool, seconds: float, advice: str = "narrow it by type, source or time and try again"
) -> AsyncIterator[Connection]:
    """One transaction; a statement that takes longer is cancelled and refused as too broad."""
    try:
        async with pool.connection() as conn, conn.transaction():
            await conn.execute(_LIMITS, [str(int(seconds * 1000))])
            yield conn
    except psycopg.errors.QueryCanceled:
        raise TooBroad(f"this took longer than {seconds:g} s; {advice}") from None
