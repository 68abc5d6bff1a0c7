"""Filter trees as SQL conditions over records, by the fragments in compile.sql.

In the condition a comparison with something that is not there is unknown, which counts as false;
`not` and `neq` are true exactly where what they deny is not.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from tristore.db.queries import load
from tristore.metastore.binding import Binding, joined
from tristore.metastore.fields import Field, Kind
from tristore.metastore.filters import And, Leaf, Node, Not, Or

_sql = load("tristore.metastore", "compile.sql")
_OPERATORS = {"eq": "=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_CAST = {Kind.TEXT: "text", Kind.NUMBER: "numeric", Kind.TIME: "timestamptz"}
# Characters of a text that indexes know; see `text` in compile.sql.
INDEXED_CHARACTERS = 200
# Alternatives that are looked up one by one in the index of all metadata.
_MOST_LOOKUPS = 20
# Text fields, as JSON lists of paths, and the namespaces that search them.
Texts = Mapping[str, Sequence[str]]


def fragment(name: str, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(getattr(_sql, name)).format(**parts)


def exact(value: int | float) -> Decimal:
    """The number as it is written: a double would reach Postgres rounded to 15 digits."""
    return Decimal(repr(value))


class Compiler:
    def __init__(self, binding: Binding, texts: Texts | None = None) -> None:
        self._bind = binding.bind
        self._texts = texts or {}

    def condition(self, node: Node) -> sql.Composable:
        if isinstance(node, And):
            return joined("AND", [self.condition(part) for part in node.parts], "TRUE")
        if isinstance(node, Or):
            return joined("OR", [self.condition(part) for part in node.parts], "FALSE")
        if isinstance(node, Not):
            return fragment("not_true", inner=self.condition(node.part))
        return self._leaf(node)

    def number(self, path: Sequence[str]) -> sql.Composed:
        return fragment("number", path=self._bind(list(path)))

    def text(self, path: Sequence[str]) -> sql.Composed:
        return fragment("text", path=self._bind(list(path)))

    def _leaf(self, leaf: Leaf) -> sql.Composable:
        if leaf.op == "neq":
            return fragment("not_true", inner=self._leaf(Leaf(leaf.field, "eq", leaf.value)))
        if leaf.op == "exists":
            there = self._exists(leaf.field)
            return there if leaf.value else fragment("not_true", inner=there)
        return _BY_KIND[leaf.field.kind](self, leaf)

    def _exists(self, field: Field) -> sql.Composable:
        if field.kind is Kind.TAGS:
            return fragment("tagged")
        return fragment("is_there", left=self._left(field))

    def _left(self, field: Field) -> sql.Composable:
        if field.kind is Kind.JSON:
            return fragment("value", path=self._bind(list(field.path)))
        return column(field)

    def _column(self, leaf: Leaf) -> sql.Composable:
        left, cast = column(leaf.field), _CAST[leaf.field.kind]
        if leaf.op == "in":
            return self._in_column(left, cast, leaf.value)
        if leaf.op == "between":
            low, high = (self.bound(_bound(value), cast) for value in leaf.value)
            return _all([_compared(left, "gte", low), _compared(left, "lte", high)])
        if leaf.op in ("prefix", "contains"):
            return self._within_text(left, left, leaf)
        if leaf.value is None:
            return fragment("is_null", left=left)
        return _compared(left, leaf.op, self.bound(_bound(leaf.value), cast))

    def _in_column(self, left: sql.Composable, cast: str, values: Sequence[Any]) -> sql.Composable:
        given = [_bound(value) for value in values if value is not None]
        found = fragment("any_of", left=left, list=self.bound(given, f"{cast}[]"))
        if None not in values:
            return found
        return joined("OR", [found, fragment("is_null", left=left)], "FALSE")

    def _tags(self, leaf: Leaf) -> sql.Composable:
        if leaf.op == "prefix":
            return fragment("tag_starts_with", value=self._bind(leaf.value))
        if leaf.op == "array_contains":
            return fragment("tags_contain", value=self._bind([leaf.value]))
        tags = self._bind(list(leaf.value))
        if leaf.op == "in":
            return fragment("tags_overlap", value=tags)
        return _all([fragment("tags_contain", value=tags), fragment("tags_within", value=tags)])

    def _json(self, leaf: Leaf) -> sql.Composable:
        path = list(leaf.field.path)
        if leaf.op == "eq":
            return self._equals(path, leaf.value)
        if leaf.op == "in":
            return self._in_json(path, leaf.value)
        if leaf.op == "has_key":
            value = self._bind(leaf.value)
            return fragment("json_has_key", path=self._bind(path), value=value)
        if leaf.op == "array_contains":
            return self._array_contains(path, leaf.value)
        if leaf.op in ("prefix", "contains"):
            whole = fragment("whole_text", path=self._bind(path))
            return self._within_text(whole, self.text(path), leaf)
        return self._ordered_json(path, leaf)

    def _equals(self, path: list[str], value: Any) -> sql.Composable:
        left = fragment("value", path=self._bind(path))
        same = _compared(left, "eq", self.bound(Jsonb(value), "jsonb"))
        return _all([same, *self._contained(path, [value])])

    def _in_json(self, path: list[str], values: Sequence[Any]) -> sql.Composable:
        given = self.bound([Jsonb(value) for value in values], "jsonb[]")
        found = fragment("any_of", left=fragment("value", path=self._bind(path)), list=given)
        return _all([found, *self._contained(path, values)])

    def _array_contains(self, path: list[str], value: Any) -> sql.Composable:
        given = self._bind(Jsonb([value]))
        found = fragment("json_array_contains", path=self._bind(path), value=given)
        return _all([found, *self._contained(path, [[value]])])

    def _contained(self, path: list[str], values: Sequence[Any]) -> list[sql.Composable]:
        """One more condition that an index answers, where it is implied: a key that may be a
        position in a list is none in a contained object."""
        indexed = all(_is_indexed(value) for value in values) and len(values) <= _MOST_LOOKUPS
        if not path or not values or not indexed or any(map(_may_be_position, path)):
            return []
        nested = (self._bind(Jsonb(_nested(path, value))) for value in values)
        return [joined("OR", [fragment("contained", nested=one) for one in nested], "FALSE")]

    def _ordered_json(self, path: list[str], leaf: Leaf) -> sql.Composable:
        if leaf.op != "between":
            return self._bounded(path, leaf.op, leaf.value)
        low, high = leaf.value
        return _all([self._bounded(path, "gte", low), self._bounded(path, "lte", high)])

    def _bounded(self, path: list[str], op: str, value: Any) -> sql.Composable:
        if not isinstance(value, str):
            return _compared(self.number(path), op, self.bound(exact(value), "numeric"))
        whole = fragment("whole_text", path=self._bind(path))
        start = self.bound(value[:INDEXED_CHARACTERS], "text")
        loose = "gte" if op in ("gt", "gte") else "lte"
        exactly = _compared(whole, op, self.bound(value, "text"))
        return _all([exactly, _compared(self.text(path), loose, start)])

    def _within_text(
        self, whole: sql.Composable, start: sql.Composable, leaf: Leaf
    ) -> sql.Composable:
        value = self._bind(leaf.value)
        if leaf.op == "contains":
            return fragment("has_substring", left=whole, value=value)
        found = fragment("starts_with", left=whole, value=value)
        low = leaf.value[:INDEXED_CHARACTERS]
        bounds = [_compared(start, "gte", self.bound(low, "text"))]
        if (high := successor(low)) is not None:
            bounds.append(_compared(start, "lt", self.bound(high, "text")))
        return _all([found, *bounds])

    def _words(self, leaf: Leaf) -> sql.Composable:
        return joined("OR", [self._match(leaf, *item) for item in self._texts.items()], "FALSE")

    def _match(self, leaf: Leaf, paths: str, names: Sequence[str]) -> sql.Composable:
        found = fragment("words_match", paths=self._bind(paths), value=self._bind(leaf.value))
        return _all([fragment("in_namespaces", names=self._bind(list(names))), found])

    def bound(self, value: Any, kind: str = "bigint") -> sql.Composed:
        return sql.SQL("{}::{}").format(self._bind(value), sql.SQL(kind))


_BY_KIND: dict[Kind, Callable[[Compiler, Leaf], sql.Composable]] = {
    Kind.TEXT: Compiler._column,
    Kind.NUMBER: Compiler._column,
    Kind.TIME: Compiler._column,
    Kind.TAGS: Compiler._tags,
    Kind.JSON: Compiler._json,
    Kind.WORDS: Compiler._words,
}


def column(field: Field) -> sql.Composable:
    found = sql.Identifier(field.column)
    if field.kind is Kind.TEXT:
        return sql.SQL('{} COLLATE "C"').format(found)
    return found


def successor(prefix: str) -> str | None:
    """The least text that is greater than all that begin with the prefix, by code points."""
    stripped = prefix.rstrip("\U0010ffff")
    if not stripped:
        return None
    last = ord(stripped[-1]) + 1
    return stripped[:-1] + chr(0xE000 if last == 0xD800 else last)


def _compared(left: sql.Composable, op: str, right: sql.Composable) -> sql.Composed:
    return fragment("compared", left=left, operator=sql.SQL(_OPERATORS[op]), right=right)


def _all(parts: list[sql.Composable]) -> sql.Composable:
    return joined("AND", parts, "TRUE")


def _bound(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return exact(value) if is_number else value


def _is_indexed(value: Any) -> bool:
    return not isinstance(value, dict) and (not isinstance(value, list) or len(value) == 1)


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _may_be_position(key: str) -> bool:
    try:
        int(key)
    except ValueError:
        return False
    return True
