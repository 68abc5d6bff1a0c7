"""A schema as a list of shapes: each allows values of one kind and is free of choices.

`anyOf`, `oneOf`, `$ref` and lists of types are resolved into shapes, so that two schemas can be
compared keyword by keyword. What is not understood (`not`, `if`, …) is left out of a shape, which
can only make it allow more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tristore.events.registry.schema_document import (
    OBJECT_SINGLE,
    SAME_MAPS,
    SAME_SINGLE,
    Node,
    is_node,
    listed,
    mapped,
    resolve,
)
from tristore.events.registry.schema_engine import compile_schema

Part = dict[str, Any]

_NUMBERS = frozenset(("integer", "fraction"))
KINDS = frozenset(("null", "boolean", "object", "array", "string")) | _NUMBERS
_MENTIONING = ("dependentRequired", *SAME_MAPS)
_MAX_SHAPES = 256
_MAX_NESTING = 60


@dataclass(frozen=True, slots=True)
class Shape:
    """Values of one kind that fulfil every part, and none of the `excluded` schemas."""

    kind: str
    parts: tuple[Part, ...] = ()
    excluded: tuple[Node, ...] = ()

    def each(self, keyword: str) -> list[Any]:
        return [part[keyword] for part in self.parts if keyword in part]

    def most(self, keyword: str) -> int:
        return max(self.each(keyword), default=0)

    def least(self, keyword: str) -> int | None:
        return min(self.each(keyword), default=None)

    def values(self) -> list[Any] | None:
        """The values there are, where they are listed or few; they may still break other rules."""
        few: dict[str, list[Any]] = {"null": [None], "boolean": [False, True]}
        lists = [*self.each("enum"), *([value] for value in self.each("const"))]
        if not lists:
            return few.get(self.kind)
        return [value for value in lists[0] if kind_of(value) in _kinds_of(self.kind)]

    @property
    def required(self) -> set[str]:
        return {name for names in self.each("required") for name in names}

    @property
    def known(self) -> set[str]:
        """Names that a part speaks of in any way."""
        mentioned = [part.get(keyword, ()) for keyword in _MENTIONING for part in self.parts]
        return self.names | self.required | {name for names in mentioned for name in names}

    @property
    def names(self) -> set[str]:
        return {name for part in self.parts for name in mapped(part, "properties")}

    def member(self, name: str) -> tuple[Node, bool]:
        """What a property must fulfil, and whether it is one that no part speaks of."""
        found: list[Node] = []
        unspoken = True
        for part in self.parts:
            spoken = declared(part, name)
            if not spoken and not (beyond := additional(part))[1]:
                spoken = [beyond[0]]
            found += spoken
            unspoken = unspoken and not spoken and not _mentions(part, name)
        return both(found), unspoken

    def others(self) -> tuple[Node, bool]:
        """What properties that nobody names must fulfil, and whether no part speaks of them."""
        beyond = [additional(part) for part in self.parts]
        return both([node for node, _ in beyond]), all(is_open for _, is_open in beyond)

    def item(self, index: int) -> Node:
        return both([_item(part, index) for part in self.parts])

    @property
    def positions(self) -> int:
        return max((len(listed(part, "prefixItems")) for part in self.parts), default=0)

    @property
    def longest(self) -> int | None:
        """The most items there can be."""
        ends = [len(listed(p, "prefixItems")) for p in self.parts if p.get("items") is False]
        return min([*self.each("maxItems"), *ends], default=None)


def shapes(root: Node, node: Node) -> list[Shape]:
    found = []
    for kinds, parts, excluded in _expand(root, node, 0):
        named = sorted(kinds - _NUMBERS)
        if numbers := kinds & _NUMBERS:
            named.append("integer" if numbers == {"integer"} else "number")
        found += [Shape(kind, parts, excluded) for kind in named]
    return found


def declared(part: Part, name: str) -> list[Node]:
    """What the named and the patterned properties of a part ask of a property."""
    named = part.get("properties", {}).get(name)
    found = [named] if is_node(named) else []
    patterned = mapped(part, "patternProperties").items()
    return found + [sub for pattern, sub in patterned if matches(pattern, name)]


def _mentions(part: Part, name: str) -> bool:
    return any(name in part.get(keyword, ()) for keyword in _MENTIONING)


def additional(part: Part) -> tuple[Node, bool]:
    """What a part asks of properties it does not name, and whether it leaves them open."""
    if is_node(found := part.get("additionalProperties")):
        return found, found is True or found == {}
    found = part.get("unevaluatedProperties")
    if not is_node(found) or found is True or found == {}:
        return True, True
    if not composed(part):
        return found, False
    # Only those that no other subschema speaks of: which these are is not known here.
    return True, found is False


def composed(part: Part) -> bool:
    return any(keyword in part for keyword in (*_CHOICES, "allOf", "$ref"))


_CHOICES = ("anyOf", "oneOf", *SAME_SINGLE, *SAME_MAPS)


def unevaluated(root: Node, node: Part) -> Part | None:
    """`unevaluatedProperties` of a composed schema, said with `additionalProperties`; None where
    it is not there, or where a choice decides what has been evaluated."""
    if "unevaluatedProperties" not in node or not composed(node) or not _choiceless(root, node):
        return None
    rest = {key: value for key, value in node.items() if key != "unevaluatedProperties"}
    parts = [part for _, parts, _ in _expand(root, rest, 0) for part in parts]
    if any(key in part for part in parts for key in OBJECT_SINGLE if key != "propertyNames"):
        return {}  # everything has been evaluated by one of these
    named = {name: True for part in parts for name in mapped(part, "properties")}
    patterned = {text: True for part in parts for text in mapped(part, "patternProperties")}
    beyond = node["unevaluatedProperties"]
    return {"properties": named, "patternProperties": patterned, "additionalProperties": beyond}


def _choiceless(root: Node, node: Node | None) -> bool:
    if not isinstance(node, dict):
        return True
    if any(keyword in node for keyword in _CHOICES):
        return False
    below = [*listed(node, "allOf"), resolve(root, node.get("$ref"))]
    return all(_choiceless(root, sub) for sub in below)


def kinds(node: Part) -> frozenset[str]:
    """The kinds of values its `type`, `enum` and `const` allow."""
    given = node.get("type", sorted(KINDS | {"number"}))
    found = frozenset().union(*map(_kinds_of, [given] if isinstance(given, str) else given))
    if "enum" in node:
        found &= {kind_of(value) for value in node["enum"]}
    if "const" in node:
        found &= {kind_of(node["const"])}
    return found


def kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    names: dict[type, str] = {float: "fraction", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def both(nodes: Iterable[Node]) -> Node:
    asked = [node for node in nodes if node is not True]
    if False in asked:
        return False
    return asked[0] if len(asked) == 1 else {"allOf": asked} if asked else True


@lru_cache(maxsize=1000)
def matches(pattern: str, name: str) -> bool:
    return compile_schema({"pattern": pattern}).is_valid(name)


def _kinds_of(name: str) -> frozenset[str]:
    return _NUMBERS if name == "number" else frozenset((name,))


def _item(part: Part, index: int) -> Node:
    prefix = listed(part, "prefixItems")
    if index < len(prefix):
        return prefix[index]
    rest = part.get("items", True if composed(part) else part.get("unevaluatedItems", True))
    return rest if is_node(rest) else True


_Alternative = tuple[frozenset[str], tuple[Part, ...], tuple[Node, ...]]


def _expand(root: Node, node: Node | None, nesting: int) -> list[_Alternative]:
    if node is False:
        return []
    if not isinstance(node, dict) or nesting > _MAX_NESTING:
        return [(KINDS, (), ())]
    found: list[_Alternative] = [(kinds(node), (node,), ())]
    every = listed(node, "allOf")
    if "$ref" in node and (target := resolve(root, node["$ref"])) is not None:
        every = [*every, target]
    for sub in every:
        found = _product(found, _expand(root, sub, nesting + 1))
    if "anyOf" in node:
        choices = [_expand(root, sub, nesting + 1) for sub in listed(node, "anyOf")]
        found = _product(found, [one for choice in choices for one in choice])
    if "oneOf" in node:
        found = _product(found, _one_of(root, listed(node, "oneOf"), nesting + 1))
    if closing := unevaluated(root, node):
        found = [(k, (*parts, closing), x) for k, parts, x in found]
    return found


def _one_of(root: Node, choices: list[Node], nesting: int) -> list[_Alternative]:
    found = []
    for index, choice in enumerate(choices):
        others = tuple(choices[:index] + choices[index + 1 :])
        found += [(k, p, x + others) for k, p, x in _expand(root, choice, nesting)]
    return found


def _product(left: list[_Alternative], right: list[_Alternative]) -> list[_Alternative]:
    found = [(a & d, b + e, c + f) for a, b, c in left for d, e, f in right if a & d]
    return found if len(found) <= _MAX_SHAPES else left
