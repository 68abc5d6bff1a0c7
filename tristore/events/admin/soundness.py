"""Whether the log is what it promises: a head row that is true, and numbers without gaps."""

from typing import Any

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events import log

_sql = load("tristore.events.admin", "soundness.sql")
_BLOCK = 10_000
_BLOCKS = 10


async def faults(conn: Connection) -> list[str]:
    """Sentences about what is wrong; call in a transaction that reads one moment of the log.

    Ten blocks of ten thousand numbers are counted, the first and the last among them.
    """
    head = await log.head(conn)
    newest = await _number(conn, _sql.newest) or head.earliest - 1
    found = []
    if newest != head.last:
        found.append(f"the head row says {head.last}, the newest event is {newest}")
    for low in _starts(head.earliest, head.last):
        high = min(low + _BLOCK - 1, head.last)
        missing = high - low + 1 - await _number(conn, _sql.count, low=low, high=high)
        if missing:
            found.append(f"{missing} numbers are missing between {low} and {high}")
    return found


def _starts(first: int, last: int) -> list[int]:
    if last < first:
        return []
    spread = [first + (last - first) * step // _BLOCKS for step in range(_BLOCKS)]
    return sorted({*spread, max(first, last - _BLOCK + 1)})


async def _number(conn: Connection, query: str, **given: int) -> int:
    row: Any = await (await conn.execute(query, given)).fetchone()
    return row[0] or 0
