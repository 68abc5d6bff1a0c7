"""How much work a payload can make a schema do, and how many errors it can raise.

Weighed is the heaviest place inside a payload: all subschemas that can meet at one value of it.
A payload of 256 KiB has at most about 131,000 places, so the heaviest place bounds the work of
any payload; places that are reached by names alone are few. One unit is about ten nanoseconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tristore.events.registry import pattern
from tristore.events.registry.schema_document import (
    ARRAY_SINGLE,
    OBJECT_SINGLE,
    SAME_LISTS,
    SAME_MAPS,
    SAME_SINGLE,
    Node,
    is_node,
    listed,
    mapped,
    resolve,
    subschemas,
)
from tristore.events.registry.schema_engine import quickly_unique, types_of_values
from tristore.events.strictjson import MAX_DEPTH

# Measured with the worst values found, per place. Fractions are compared and divided exactly,
# which takes microseconds, unless a `type` turns them away first; of big integers many have one
# hash, and uniqueItems compares them pair by pair.
_UNIQUE = 6_400
_UNIQUE_TYPED = 700
_FRACTION = 800
_NUMBER = 400
_INTEGER = 20
_MAX_CHAIN = 50
# More places than this by names alone (a tree of references makes millions) count as many.
_FEW = 20_000
_FULL = 10**9

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class EndlessReference(ValueError):
    """A `$ref` leads back to itself, or through too many others, without entering the value."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Of the heaviest place: any one, and one of the many that lists and open objects have.

    `named` counts the places that names alone can reach.
    """

    any: int
    many: int
    named: int = 1


def work(node: dict[str, Any]) -> Weight:
    """Of the keywords of one subschema, without those below it. A pattern works byte by byte, so
    one long string is as much work as many places."""
    texts = [node.get("pattern"), *mapped(node, "patternProperties")]
    matching = sum(pattern.states(text) for text in texts if isinstance(text, str))
    total = errors(node).any + matching
    if node.get("uniqueItems") is True:
        total += _UNIQUE_TYPED if quickly_unique(node) else _UNIQUE
    total += _FRACTION if _is_fraction(node.get("multipleOf")) else 0
    total += _NUMBER * sum(_is_fraction(node.get(keyword)) for keyword in _BOUNDS)
    listed_values = node.get("enum")
    values = listed_values if isinstance(listed_values, list) else []
    whole = node.get("type") == "integer" or bool(types_of_values(node))
    number = _INTEGER if whole else _NUMBER
    total += sum(_compared(value, number) for value in [*values, node.get("const")])
    return Weight(total, matching)


def _compared(value: object, number: int) -> int:
    if value is None or isinstance(value, str | bool):
        return 1
    return _NUMBER if isinstance(value, dict | list) else number


def _is_fraction(value: object) -> bool:
    return isinstance(value, float) and not value.is_integer()


def errors(node: dict[str, Any]) -> Weight:
    """How many errors the keywords of one subschema can raise at one place."""
    dependent = node.get("dependentRequired")
    names = dependent.values() if isinstance(dependent, dict) else ()
    lists = [node.get("required"), *names]
    count = sum(len(found) for found in lists if isinstance(found, list))
    return Weight(len(node) + count, 0)


Own = Callable[[dict[str, Any]], Weight]


def heaviest(root: Node, own: Own) -> Weight:
    return _Weights(root, own).heaviest()


class _Weights:
    """Weights of every subschema, level by level: first at the place it stands for, then at the
    heaviest place one step deeper, and so on to the depth a payload can have."""

    def __init__(self, root: Node, own: Own) -> None:
        self._root = root
        self._own = own
        self._nodes = _all_nodes(root)
        self._above: dict[int, Weight] = {}
        self._here: dict[int, Weight] = {}

    def heaviest(self) -> Weight:
        found = Weight(0, 0, 0)
        for depth in range(MAX_DEPTH + 1):
            self._above, self._here = self._here, {}
            for node in self._nodes:
                self._weigh(node, depth == 0, ())
            at_root = self._here.get(id(self._root), _NOTHING)
            settled = depth > 0 and self._here == self._above
            levels = MAX_DEPTH + 1 - depth if settled else 1
            named = found.named + at_root.named * levels
            found = Weight(max(found.any, at_root.any), max(found.many, at_root.many), named)
            if settled:
                break
        return found if found.named <= _FEW else replace(found, many=found.any)

    def _weigh(self, node: Node, at_top: bool, chain: tuple[int, ...]) -> Weight:
        if isinstance(node, bool):
            return _NOTHING
        if (known := self._here.get(id(node))) is not None:
            return known
        if id(node) in chain or len(chain) > _MAX_CHAIN:
            raise EndlessReference
        inner = (*chain, id(node))
        met = [self._weigh(sub, at_top, inner) for sub in self._same_place(node)]
        met.append(self._own(node) if at_top else self._one_deeper(node))
        self._here[id(node)] = _sum(met)
        return self._here[id(node)]

    def _same_place(self, node: dict[str, Any]) -> list[Node]:
        found = [sub for keyword in SAME_LISTS for sub in listed(node, keyword)]
        found += [node[keyword] for keyword in SAME_SINGLE if is_node(node.get(keyword))]
        found += [sub for keyword in SAME_MAPS for sub in mapped(node, keyword).values()]
        if (target := resolve(self._root, node.get("$ref"))) is not None:
            found.append(target)
        return found

    def _one_deeper(self, node: dict[str, Any]) -> Weight:
        """A value is an object or an array, and a member has one name or one position."""
        named = [*mapped(node, "properties").values(), *listed(node, "prefixItems")]
        open_names = [node[key] for key in OBJECT_SINGLE if is_node(node.get(key))]
        open_names += mapped(node, "patternProperties").values()
        items = [node[key] for key in ARRAY_SINGLE if is_node(node.get(key))]
        reached = [self._above.get(id(sub), _NOTHING) for sub in named]
        rest = max(self._total(open_names), self._total(items))
        return Weight(
            max((w.any for w in reached), default=0) + rest,
            max((w.many for w in reached), default=0) + rest,
            min(sum(w.named for w in reached), _FULL),
        )

    def _total(self, nodes: list[Node]) -> int:
        return sum(self._above[id(sub)].any for sub in nodes if id(sub) in self._above)


_NOTHING = Weight(0, 0, 0)


def _sum(weights: list[Weight]) -> Weight:
    any, many = sum(w.any for w in weights), sum(w.many for w in weights)
    return Weight(min(any, _FULL), min(many, _FULL), min(sum(w.named for w in weights), _FULL))


def _all_nodes(root: Node) -> list[Node]:
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting += [sub for _, sub in subschemas(node)]
    return found
