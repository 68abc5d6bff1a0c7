"""The journal as a feed to resume from, in an order to which nothing is added later."""

import asyncio
import time
from typing import Any, cast

from psycopg.rows import class_row

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.filestore.model import Entry

_sql = load("tristore.filestore", "journal.sql")

# Longest wait for commits under way; then the page is empty and the reader comes again.
_WAIT_SECONDS = 2.0


async def page(pool: Pool, after: int, limit: int, mounts: list[str] | None) -> list[Entry]:
    """Finished entries behind `after` that no open or uncommitted one can still precede."""
    async with pool.connection() as conn:
        newest = await _number(conn, _sql.newest)
        if newest is None or newest <= after or not await _inserted(conn):
            return []
        # Asked in this order: what was open at the first question is not told by the second.
        oldest = await _number(conn, _sql.oldest_open)
        below = newest + 1 if oldest is None else min(oldest, newest + 1)
        cursor = conn.cursor(row_factory=class_row(Entry))
        given = {"after": after, "below": below, "mounts": mounts, "limit": limit}
        return await (await cursor.execute(_sql.feed, given)).fetchall()


async def _inserted(conn: Connection) -> bool:
    """Waits until whoever may hold a number by now has committed or given up."""
    waited_for = await _inserting(conn)
    deadline = time.monotonic() + _WAIT_SECONDS
    while waited_for and time.monotonic() < deadline:
        await asyncio.sleep(0.002)
        waited_for &= await _inserting(conn)
    return not waited_for


async def _inserting(conn: Connection) -> set[str]:
    rows = await (await conn.execute(_sql.inserting)).fetchall()
    return {str(row[0]) for row in rows}


async def _number(conn: Connection, query: Any) -> int | None:
    row = await (await conn.execute(query)).fetchone()
    return cast(int | None, row and row[0])
