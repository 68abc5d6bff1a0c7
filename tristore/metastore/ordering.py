"""The order of a search: a total one, so that a page can begin after any record.

A metadata path sorts numbers first, then texts (by code point), then all that is neither; what is
missing comes last in both directions, and the record made first breaks a tie.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from psycopg import sql

from tristore.errors import InvalidQuery
from tristore.metastore import fields
from tristore.metastore.binding import joined
from tristore.metastore.compile import Compiler, column, fragment
from tristore.metastore.fields import SYSTEM, Field, Kind

MAX_SORTS = 8
_COMPARED = {"text": str, "numeric": Decimal, "timestamptz": datetime}
_CAST = {Kind.TEXT: "text", Kind.NUMBER: "numeric", Kind.TIME: "timestamptz"}


@dataclass(frozen=True, slots=True)
class Sort:
    field: Field
    descending: bool = False


DEFAULT = (Sort(SYSTEM["key"]),)


@dataclass(frozen=True, slots=True)
class Key:
    """One expression to order by, and the SQL type of its values."""

    expression: sql.Composable
    cast: str
    descending: bool
    nullable: bool

    @property
    def kind(self) -> type:
        return _COMPARED[self.cast]

    def direction(self, *, nulls_last: bool) -> sql.SQL:
        # Only the descending order has to say it; an index that is read backwards has nulls first.
        last = " NULLS LAST" if nulls_last and self.nullable else ""
        return sql.SQL(f"DESC{last}" if self.descending else "ASC")


@dataclass(frozen=True, slots=True)
class Position:
    """The last record of a page: the values of its keys, and its number."""

    values: tuple[Any, ...]
    id: int


def parse(given: Sequence[tuple[Any, bool]]) -> tuple[Sort, ...]:
    if len(given) > MAX_SORTS:
        raise InvalidQuery(f"sort: at most {MAX_SORTS} fields")
    return tuple(_sort(number, *item) for number, item in enumerate(given)) or DEFAULT


def _sort(number: int, name: Any, descending: bool) -> Sort:
    try:
        field = fields.parse(name)
    except InvalidQuery as error:
        raise InvalidQuery(f"sort[{number}].field: {error}") from None
    if field.kind in (Kind.TAGS, Kind.WORDS):
        raise InvalidQuery(f"sort[{number}].field: {field.name} has no order; sort by another")
    return Sort(field, descending)


def keys(sorts: Sequence[Sort], compiler: Compiler) -> list[Key]:
    return [key for sort in sorts for key in _keys(sort, compiler)]


def _keys(sort: Sort, compiler: Compiler) -> list[Key]:
    field, down = sort.field, sort.descending
    if field.kind is not Kind.JSON:
        return [Key(column(field), _CAST[field.kind], down, field.nullable)]
    return [
        Key(compiler.number(field.path), "numeric", down, True),
        Key(compiler.text(field.path), "text", down, True),
    ]


def selected(found: Sequence[Key]) -> sql.Composed:
    """The keys as columns k0, k1, …"""
    columns = (sql.SQL("{} AS {}").format(k.expression, _name(n)) for n, k in enumerate(found))
    return sql.SQL(", ").join(columns)


def order(found: Sequence[Key], *, nulls_last: bool = True) -> sql.Composed:
    parts = [
        sql.SQL("{} {}").format(_name(number), key.direction(nulls_last=nulls_last))
        for number, key in enumerate(found)
    ]
    return sql.SQL(", ").join([*parts, sql.SQL("id DESC" if found[-1].descending else "id ASC")])


def after(found: Sequence[Key], position: Position, compiler: Compiler) -> sql.Composable:
    """The condition of all that comes later, whatever is null."""
    last = sql.SQL("id {} {}").format(_sign(found[-1]), compiler.bound(position.id))
    rest: sql.Composable = last
    for key, value in reversed(list(zip(found, position.values, strict=True))):
        rest = _after(key, value, rest, compiler)
    return rest


def _after(key: Key, value: Any, rest: sql.Composable, compiler: Compiler) -> sql.Composable:
    if value is None:
        absent = fragment("is_null", left=key.expression)
        return joined("AND", [absent, rest], "TRUE")
    given = compiler.bound(value, key.cast)
    beyond = _compared(key, _sign(key), given)
    same = joined("AND", [_compared(key, sql.SQL("="), given), rest], "TRUE")
    absent_too = [fragment("is_null", left=key.expression)] if key.nullable else []
    return joined("OR", [beyond, same, *absent_too], "FALSE")


def beyond(key: Key, value: Any, position: Position, compiler: Compiler) -> sql.Composable:
    """The same for one key that is never null, in the form an index on (key, id) answers."""
    return sql.SQL("({}, id) {} ({}, {})").format(
        key.expression, _sign(key), compiler.bound(value, key.cast), compiler.bound(position.id)
    )


def _compared(key: Key, sign: sql.SQL, given: sql.Composable) -> sql.Composed:
    return fragment("compared", left=key.expression, operator=sign, right=given)


def _sign(key: Key) -> sql.SQL:
    return sql.SQL("<" if key.descending else ">")


def _name(number: int) -> sql.Identifier:
    return sql.Identifier(f"k{number}")
