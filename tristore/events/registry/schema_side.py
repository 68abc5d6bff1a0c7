"""One side of a comparison: a schema whose parts can be asked by themselves."""

import json
from typing import Any

from jsonschema_rs import Draft202012Validator

from tristore.events.registry.schema_document import (
    ANNOTATIONS,
    LISTS,
    MAPS,
    SINGLE,
    Node,
    resolve,
    rewritten,
)
from tristore.events.registry.schema_engine import compile_schema
from tristore.events.registry.schema_shape import Shape, shapes

_UNORDERED = ("required", "enum", "type")


class Side:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.validator = compile_schema(root)
        self._moved = rewritten(root, _moved)
        self._compiled: dict[str, Draft202012Validator] = {}
        # By identity, with the node itself, so that no other can take its identity.
        self._shapes: dict[int, tuple[Node, list[Shape]]] = {}

    def accepts(self, node: Node, value: object) -> bool:
        """Whether a part of the schema accepts a value, by the engine's own word."""
        if isinstance(node, bool):
            return node
        key = text(node)
        if key not in self._compiled:
            part = {"allOf": [rewritten(node, _moved)], "$defs": {"whole": self._moved}}
            self._compiled[key] = compile_schema(part)
        return self._compiled[key].is_valid(value)

    def shapes(self, node: Node) -> list[Shape]:
        if id(node) not in self._shapes:
            self._shapes[id(node)] = (node, shapes(self.root, node))
        return self._shapes[id(node)][1]

    def resolve(self, ref: object) -> Node:
        target = resolve(self.root, ref)
        assert target is not None, ref
        return target


def text(value: object) -> str:
    """Equal for equal JSON; tells 1 from true, which Python does not."""
    return json.dumps(value, sort_keys=True)


def same(left: Side, a: Node, right: Side, b: Node) -> bool:
    """Whether two parts say the same in the same way, apart from titles and the like."""
    return _Equality(left, right).of(a, b)


class _Equality:
    def __init__(self, left: Side, right: Side) -> None:
        self._left = left
        self._right = right
        self._seen: set[tuple[str, str]] = set()

    def of(self, a: Node, b: Node) -> bool:
        a, b = _followed(self._left, a), _followed(self._right, b)
        if isinstance(a, bool) or isinstance(b, bool):
            return a is b
        key = (text(a), text(b))
        if key in self._seen:
            return True
        self._seen.add(key)
        names = set(a) - ANNOTATIONS
        return names == set(b) - ANNOTATIONS and all(self._keyword(n, a[n], b[n]) for n in names)

    def _keyword(self, name: str, a: Any, b: Any) -> bool:
        if name in SINGLE:
            return self.of(a, b)
        if name in LISTS:
            return len(a) == len(b) and all(map(self.of, a, b))
        if name in MAPS:
            return a.keys() == b.keys() and all(self.of(a[key], b[key]) for key in a)
        if name == "$ref":
            return self.of(self._left.resolve(a), self._right.resolve(b))
        if name in _UNORDERED and isinstance(a, list) and isinstance(b, list):
            return sorted(map(text, a)) == sorted(map(text, b))
        return text(a) == text(b)


def _followed(side: Side, node: Node) -> Node:
    while isinstance(node, dict) and set(node) - ANNOTATIONS == {"$ref"}:
        node = side.resolve(node["$ref"])
    return node


def _moved(keywords: dict[str, Any]) -> dict[str, Any]:
    """References as they read when the whole schema stands under `$defs`."""
    found = {key: value for key, value in keywords.items() if key != "$schema"}
    if "$ref" in found:
        found["$ref"] = "#/$defs/whole" + found["$ref"][1:]
    return found
