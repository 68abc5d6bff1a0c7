"""Registered schemas in Postgres: found, added, switched off, and learned by running processes."""

from typing import Any, cast

import orjson
from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.db.wakeups import SCHEMAS
from tristore.errors import NotFound
from tristore.events.admin.listing import Pattern
from tristore.events.registry.registry import Registry
from tristore.events.registry.schema_version import SchemaVersion, Status

_sql = load("tristore.events.registry", "schemas.sql")
Place = tuple[str, int]


async def freshen(conn: Connection, registry: Registry) -> int:
    """Brings a registry up to date, by one cheap question where it is already. A schema whose
    registration was committed before this call is known after it."""
    revision = await _number(conn, _sql.revision)
    if revision < registry.revision:
        registry.forget()  # the database was restored to an earlier state
    if revision != registry.revision:
        found = await _find(conn, _sql.changed, {"known": registry.revision})
        registry.learn(found, revision)
    return registry.revision


async def lock(conn: Connection) -> None:
    """Until the transaction ends, nobody else changes a schema."""
    await _number(conn, _sql.lock)


async def versions(conn: Connection, type: str) -> list[SchemaVersion]:
    """Newest first."""
    return await _find(conn, _sql.versions, {"type": type})


async def holders(conn: Connection, type: str, schema: dict[str, Any]) -> set[int]:
    """The versions that have just this schema, as Postgres compares JSON."""
    given = {"type": type, "schema": orjson.dumps(schema).decode()}
    rows = await (await conn.execute(_sql.holders, given)).fetchall()
    return {cast(int, version) for (version,) in rows}


async def page(
    conn: Connection, after: Place, wanted: Pattern | None, limit: int
) -> list[SchemaVersion]:
    given = {"type": after[0], "version": after[1], "limit": limit}
    exact, prefix = (wanted.exact, wanted.prefix) if wanted else (None, None)
    return await _find(conn, _sql.page, {**given, "exact": exact, "prefix": prefix})


async def add(
    conn: Connection, type: str, version: int, status: Status, schema: dict[str, Any], by: str
) -> SchemaVersion:
    """Call after `lock`."""
    row = {"type": type, "version": version, "status": status, "created_by": by}
    row |= {"schema": orjson.dumps(schema).decode(), "revision": await _advance(conn)}
    (added,) = await _find(conn, _sql.add, row)
    return added


async def set_status(conn: Connection, type: str, version: int, status: Status) -> SchemaVersion:
    """Call after `lock`."""
    row = {"type": type, "version": version, "status": status, "revision": await _advance(conn)}
    found = await _find(conn, _sql.set_status, row)
    if not found:
        raise NotFound(f"no version {version} of {type} was registered")
    return found[0]


async def _advance(conn: Connection) -> int:
    # Within a registration's transaction; nothing that waits for speed commits with it.
    await conn.execute("SELECT pg_notify(%s, '')", [SCHEMAS])
    return await _number(conn, _sql.advance)


async def _find(conn: Connection, query: str, given: dict[str, Any]) -> list[SchemaVersion]:
    cursor = conn.cursor(row_factory=class_row(SchemaVersion))
    await cursor.execute(query, given)
    return await cursor.fetchall()


async def _number(conn: Connection, query: str) -> int:
    row = await (await conn.execute(query)).fetchone()
    assert row is not None
    return cast(int, row[0])
