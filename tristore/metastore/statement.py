"""The SQL of one search: its conditions compiled once, in the forms its plans need."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from psycopg import sql
from psycopg.types.json import set_json_loads

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.metastore import ordering
from tristore.metastore.binding import Binding, joined
from tristore.metastore.compile import Compiler, Texts, fragment
from tristore.metastore.filters import EVERYTHING, Node
from tristore.metastore.model import Record
from tristore.metastore.ordering import Position, Sort

_sql = load("tristore.metastore", "search.sql")
_COLUMNS = 11


@dataclass(frozen=True, slots=True)
class Found:
    """A record, and its place in the order."""

    record: Record
    position: Position


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records, of which namespaces (None: all), in which order."""

    namespaces: tuple[str, ...] | None
    tree: Node
    sorts: tuple[Sort, ...]
    include_deleted: bool = False


class Statement:
    def __init__(self, wanted: Wanted, texts: Texts) -> None:
        self._binding = Binding()
        self._compiler = Compiler(self._binding, texts)
        self.unfiltered = wanted.tree == EVERYTHING
        self.keys = ordering.keys(wanted.sorts, self._compiler)
        self._base = self._within(wanted)
        self._condition = self._compiler.condition(wanted.tree)

    async def filter_first(
        self, conn: Connection, position: Position | None, limit: int
    ) -> list[Found]:
        where = [*self._base, self._condition]
        if position is not None:
            where.append(ordering.after(self.keys, position, self._compiler))
        rows = await self._run(
            conn,
            "filter_first",
            keys=ordering.selected(self.keys),
            where=joined("AND", where, "TRUE"),
            order=ordering.order(self.keys),
            limit=self._compiler.bound(limit),
        )
        return [_found(row[:_COLUMNS], row[_COLUMNS + 1 :], row[_COLUMNS]) for row in rows]

    async def walk(
        self, conn: Connection, number: int, position: Position | None, scan: int, limit: int
    ) -> tuple[list[Found], int]:
        """Of the next `scan` records that have the key with this number, those that pass; and how
        many there were."""
        key = self.keys[number]
        base = [*self._base]
        if key.nullable:
            base.append(fragment("is_there", left=key.expression))
        if position is not None:
            value = position.values[number]
            base.append(ordering.beyond(key, value, position, self._compiler))
        rows = await self._run(
            conn,
            "walk",
            keys=ordering.selected([key]),
            base=joined("AND", base, "TRUE"),
            walk_order=ordering.order([key], nulls_last=False),
            scan=self._compiler.bound(scan),
            where=self._condition,
            order=ordering.order([key]),
            limit=self._compiler.bound(limit),
        )
        found = [self._walked(row, number) for row in rows if row[0] is not None]
        return found, rows[0][-1]

    async def count(self, conn: Connection) -> int:
        where = joined("AND", [*self._base, self._condition], "TRUE")
        rows = await self._run(conn, "count", where=where)
        return int(rows[0][0])

    def _within(self, wanted: Wanted) -> list[sql.Composable]:
        found: list[sql.Composable] = []
        names, bind = wanted.namespaces, self._binding.bind
        if names is not None and len(names) == 1:
            # Indexes that a namespace declares are known by this very condition.
            found.append(fragment("in_namespace", namespace=bind(names[0])))
        elif names is not None:
            found.append(fragment("in_namespaces", names=bind(list(names))))
        if not wanted.include_deleted:
            found.append(fragment("is_null", left=sql.Identifier("deleted_at")))
        return found

    def _walked(self, row: Sequence[Any], number: int) -> Found:
        values: list[Any] = [None] * len(self.keys)
        values[number] = row[_COLUMNS + 1]
        return _found(row[:_COLUMNS], values, row[_COLUMNS])

    async def _run(self, conn: Connection, name: str, **parts: sql.Composable) -> list[Any]:
        statement = sql.SQL(getattr(_sql, name)).format(**parts)
        cursor = conn.cursor()
        set_json_loads(orjson.loads, cursor)
        # Never prepared: a plan that does not know the values does not know the indexes either.
        await cursor.execute(statement, self._binding.values, prepare=False)
        return await cursor.fetchall()


def _found(columns: Sequence[Any], values: Sequence[Any], number: int) -> Found:
    namespace, key, metadata, tags, *rest = columns
    record = Record(namespace, key, metadata, tuple(tags), *rest)
    return Found(record, Position(tuple(values), number))
