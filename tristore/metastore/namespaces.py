"""Namespaces: where records live, each with its rules."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import kwargs_row
from psycopg.types.json import Jsonb

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.metastore.model import Namespace

_sql = load("tristore.metastore", "namespaces.sql")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The rules a namespace is to have; whatever it had before is replaced."""

    schema: dict[str, Any] | None
    allowed_tags: tuple[str, ...] | None
    require_owner: bool
    key_pattern: str | None
    indexes: list[Any]
    text_fields: list[Any]

    def same_as(self, found: Namespace) -> bool:
        return self == Wanted(
            found.schema,
            found.allowed_tags,
            found.require_owner,
            found.key_pattern,
            found.indexes,
            found.text_fields,
        )


async def find(conn: Connection, names: Collection[str]) -> list[Namespace]:
    cursor = conn.cursor(row_factory=kwargs_row(_namespace))
    return await (await cursor.execute(_sql.find, {"names": list(names)})).fetchall()


async def page(
    conn: Connection, after: str, limit: int, allowed: Sequence[str] | None
) -> list[Namespace]:
    given = {"after": after, "limit": limit, "allowed": None if allowed is None else list(allowed)}
    cursor = conn.cursor(row_factory=kwargs_row(_namespace))
    return await (await cursor.execute(_sql.page, given)).fetchall()


async def hold(conn: Connection, names: Collection[str]) -> dict[str, int]:
    rows: list[Any] = await (await conn.execute(_sql.hold, {"names": list(names)})).fetchall()
    return dict(rows)


async def take(conn: Connection, name: str) -> Namespace | None:
    """The namespace, for the one who is about to change it."""
    await conn.execute(_sql.take, {"name": name})
    return next(iter(await find(conn, [name])), None)


async def put(conn: Connection, name: str, wanted: Wanted, actor: str) -> Namespace:
    """Call it between `take` and the end of the same transaction."""
    row = {
        "name": name,
        "schema": None if wanted.schema is None else Jsonb(wanted.schema),
        "allowed_tags": None if wanted.allowed_tags is None else list(wanted.allowed_tags),
        "require_owner": wanted.require_owner,
        "key_pattern": wanted.key_pattern,
        "indexes": Jsonb(wanted.indexes),
        "text_fields": Jsonb(wanted.text_fields),
        "actor": actor,
    }
    cursor = conn.cursor(row_factory=kwargs_row(_namespace))
    made = await (await cursor.execute(_sql.put, row)).fetchone()
    assert made is not None
    return made


async def scan(conn: Connection, name: str, after: str, limit: int) -> list[Any]:
    given = {"name": name, "after": after, "limit": limit}
    return await (await conn.execute(_sql.scan, given)).fetchall()


def _namespace(*, allowed_tags: list[str] | None, **columns: Any) -> Namespace:
    return Namespace(allowed_tags=None if allowed_tags is None else tuple(allowed_tags), **columns)
