"""Declared indexes: made while writes go on, and dropped when no namespace declares them."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.metastore import declared
from tristore.metastore.compile import fragment
from tristore.metastore.declared import PREFIX, Declared, index_name
from tristore.metastore.fields import written

_sql = load("tristore.metastore", "indexes.sql")
_log = logging.getLogger(__name__)
# An index of numbers and one of texts: each record is in one of the two at most.
_ORDERED = ("number", "text")
# Every write asks each index whether the record belongs to it, and every search considers them all.
MOST_INDEXES = 100


async def ready(conn: Connection, namespace: str, path: Sequence[str]) -> bool:
    """Whether a namespace's records can be walked in the order of a metadata path."""
    names = [index_name(namespace, kind, written(path)) for kind in _ORDERED]
    row: Any = await (await conn.execute(_sql.ready, {"names": names})).fetchone()
    return bool(row[0] == len(names))


class DeclaredIndexes(Background):
    """Keeps the indexes as the namespaces declare them. Any number of processes may; they take
    turns."""

    def __init__(self, pool: Pool, pause_seconds: float = 5.0) -> None:
        self._pool = pool
        self._pause_seconds = pause_seconds

    async def _work(self) -> None:
        while True:
            try:
                await obedient(self._settle())
            except (psycopg.Error, PoolTimeout, OSError) as error:
                _log.warning("declared indexes are not settled: %s", type(error).__name__)
            await asyncio.sleep(self._pause_seconds)

    async def _settle(self) -> None:
        async with self._pool.connection() as conn:
            await settle(conn)


async def settle(conn: Connection) -> bool:
    """Drops what is not wanted or not whole, then makes what is missing; True if it changed
    anything. Takes as long as that takes; does nothing while another process is at it."""
    wanted = await _wanted(conn)
    if not await _work_left(conn, wanted):
        return False
    if not await _one(conn, _sql.take_turn):
        return False
    try:
        return await _change(conn, wanted)
    finally:
        await conn.execute(_sql.end_turn)


async def _change(conn: Connection, wanted: dict[str, sql.Composed]) -> bool:
    made = await _made(conn)
    for name, whole in made.items():
        if name not in wanted or not whole:
            await conn.execute(sql.SQL(_sql.drop).format(name=sql.Identifier(name)))
    missing = [name for name in wanted if not made.get(name)]
    for name in missing:
        await conn.execute(wanted[name])
    if missing:
        await conn.execute(_sql.analyze)
    return True


async def _work_left(conn: Connection, wanted: dict[str, sql.Composed]) -> bool:
    made = await _made(conn)
    return made.keys() != wanted.keys() or not all(made.values())


async def _made(conn: Connection) -> dict[str, bool]:
    rows: list[Any] = await (await conn.execute(_sql.made, {"prefix": PREFIX})).fetchall()
    return dict(rows)


async def _wanted(conn: Connection) -> dict[str, sql.Composed]:
    """The statement that makes each index, by its name."""
    every = await declared.read(conn, None, None)
    found = [pair for one in every for pair in _statements(one)]
    if len(found) > MOST_INDEXES:
        _log.warning("%d declared indexes are left out", len(found) - MOST_INDEXES)
    return dict(found[:MOST_INDEXES])


def _statements(one: Declared) -> Iterator[tuple[str, sql.Composed]]:
    for path in one.indexes:
        for kind in _ORDERED:
            name = index_name(one.namespace, kind, written(path))
            expression = fragment(kind, path=sql.Literal(list(path)))
            yield name, _make("make_ordered", name, one, expression=expression)
    if one.text_fields:
        name = index_name(one.namespace, "words", one.text_paths)
        yield name, _make("make_words", name, one, paths=sql.Literal(one.text_paths))


def _make(kind: str, name: str, one: Declared, **parts: sql.Composable) -> sql.Composed:
    """Values cannot be bound where an index is made; they stand in it as quoted literals."""
    namespace = sql.Literal(one.namespace)
    statement = sql.SQL(getattr(_sql, kind))
    return statement.format(name=sql.Identifier(name), namespace=namespace, **parts)


async def _one(conn: Connection, query: str) -> Any:
    row: Any = await (await conn.execute(query)).fetchone()
    return row[0]
