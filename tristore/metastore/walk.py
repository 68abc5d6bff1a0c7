"""A page by walking an index in the order of the search, as long as that looks worth while.

A walk is quick where much passes the filter and hopeless where little does, and no estimate can be
trusted to tell the two apart: the first records are examined, and what passes among them tells.
"""

from tristore.db.pool import Connection
from tristore.metastore.fields import Kind
from tristore.metastore.indexes import ready
from tristore.metastore.ordering import Position
from tristore.metastore.statement import Found, Statement, Wanted

# Records examined before anything is known, and at most.
FIRST_SCAN = 300
MOST_SCANNED = 10_000
_INDEXED = frozenset({"key", "updatedAt", "createdAt", "owner"})


async def possible(conn: Connection, wanted: Wanted) -> bool:
    """Whether an index has the order of the search."""
    if wanted.namespaces is None or len(wanted.namespaces) != 1 or len(wanted.sorts) != 1:
        return False
    field = wanted.sorts[0].field
    if field.kind is Kind.JSON:
        return not wanted.include_deleted and await ready(conn, wanted.namespaces[0], field.path)
    return field.name in _INDEXED and (field.name == "key" or not wanted.include_deleted)


async def page(
    conn: Connection, statement: Statement, position: Position | None, limit: int
) -> list[Found] | None:
    """The next `limit` records, fewer only if there are no more; None if walking is not the way."""
    found: list[Found] = []
    for number in range(len(statement.keys)):
        if position is not None and position.values[number] is None:
            continue
        leg = await _leg(conn, statement, number, position, limit - len(found))
        if leg is None:
            return None
        found += leg
        if len(found) >= limit:
            return found
        position = None
    # Records without any of the keys come last and are in no index.
    return None if statement.keys[-1].nullable else found


async def _leg(
    conn: Connection, statement: Statement, number: int, position: Position | None, limit: int
) -> list[Found] | None:
    """The next records that have one key, in its order; None if too few of them pass."""
    scan = limit if statement.unfiltered else max(FIRST_SCAN, limit)
    while True:
        found, examined = await statement.walk(conn, number, position, scan, limit)
        if len(found) >= limit or examined < scan:
            return found
        needed = scan * limit * 3 // (2 * max(len(found), 1))
        if needed > MOST_SCANNED:
            return None
        scan = max(needed, scan + 1)
