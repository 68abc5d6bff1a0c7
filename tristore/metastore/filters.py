"""Filters as a tree: what came as JSON becomes typed nodes, or is refused with its place."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tristore.errors import InvalidQuery
from tristore.metastore import fields, values
from tristore.metastore.fields import Field

MAX_DEPTH = 8
MAX_NODES = 1000


@dataclass(frozen=True, slots=True)
class Leaf:
    """One comparison. `value` has been checked against the field and the operation."""

    field: Field
    op: str
    value: Any


@dataclass(frozen=True, slots=True)
class And:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    part: "Node"


Node = Leaf | And | Or | Not
EVERYTHING = And(())


def parse(given: Any) -> Node:
    """The tree of a request. Never slower than the tree is large: it is counted on the way."""
    return _Reading().node(given, "filter", 1)


def join(*trees: Node) -> Node:
    """All of them; a tree that takes everything is left out."""
    parts = [tree for tree in trees if tree != EVERYTHING]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def leaves(node: Node) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
    elif isinstance(node, Not):
        yield from leaves(node.part)
    else:
        for part in node.parts:
            yield from leaves(part)


def check_size(node: Node) -> Node:
    """For trees that were not read from JSON."""
    if _depth(node) > MAX_DEPTH:
        raise InvalidQuery(f"brackets nest deeper than {MAX_DEPTH}")
    if _count(node) > MAX_NODES:
        raise InvalidQuery(f"there are more than {MAX_NODES} conditions")
    return node


def _depth(node: Node) -> int:
    return 1 + max(map(_depth, _below(node)), default=0)


def _count(node: Node) -> int:
    return 1 + sum(map(_count, _below(node)))


def _below(node: Node) -> "tuple[Node, ...]":
    if isinstance(node, Leaf):
        return ()
    return (node.part,) if isinstance(node, Not) else node.parts


class _Reading:
    def __init__(self) -> None:
        self._nodes = 0

    def node(self, given: Any, place: str, depth: int) -> Node:
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise InvalidQuery(f"{place}: a filter nests at most {MAX_DEPTH} deep")
        if self._nodes > MAX_NODES:
            raise InvalidQuery(f"{place}: a filter has at most {MAX_NODES} nodes")
        if not isinstance(given, dict):
            raise InvalidQuery(f"{place}: {_SHAPES}")
        if given.keys() == {"not"}:
            return Not(self.node(given["not"], f"{place}.not", depth + 1))
        for name, kind in (("and", And), ("or", Or)):
            if given.keys() == {name}:
                return kind(self._parts(given[name], f"{place}.{name}", depth))
        return _leaf(given, place)

    def _parts(self, given: Any, place: str, depth: int) -> tuple[Node, ...]:
        if not isinstance(given, list):
            raise InvalidQuery(f"{place}: must be a list of filters")
        return tuple(
            self.node(part, f"{place}[{number}]", depth + 1) for number, part in enumerate(given)
        )


def _leaf(given: dict[str, Any], place: str) -> Leaf:
    if not {"field", "op"} <= given.keys() <= {"field", "op", "value"}:
        raise InvalidQuery(f"{place}: {_SHAPES}")
    try:
        field = fields.parse(given["field"])
    except InvalidQuery as error:
        raise InvalidQuery(f"{place}.field: {error}") from None
    return leaf(field, given["op"], given.get("value"), place)


def leaf(field: Field, op: Any, value: Any, place: str) -> Leaf:
    if not isinstance(op, str) or op not in values.operations(field.kind):
        known = ", ".join(values.operations(field.kind))
        raise InvalidQuery(f"{place}.op: {field.name} takes {known}")
    try:
        return Leaf(field, op, values.read(field, op, value))
    except InvalidQuery as error:
        raise InvalidQuery(f"{place}.value: {error}") from None


_SHAPES = 'a filter is {"and": […]}, {"or": […]}, {"not": {…}} or {"field": …, "op": …, "value": …}'
