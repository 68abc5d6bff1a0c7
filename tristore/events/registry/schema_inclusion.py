"""Whether everything one schema lets writers send is accepted by another, and where not.

A property that the writer's schema leaves open and the reader's names is taken as not sent:
nobody sent it before it had a name. Where a schema is not understood, a gap is reported, so "no
gaps" can be relied on and a gap needs a witness.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tristore.events.registry.schema_apart import apart
from tristore.events.registry.schema_document import Node, listed, mapped
from tristore.events.registry.schema_gap import Gap, TooComplex, distinct
from tristore.events.registry.schema_rules import clashes
from tristore.events.registry.schema_sample import MOST, UNNAMED, Sampler
from tristore.events.registry.schema_shape import (
    Part,
    Shape,
    additional,
    both,
    composed,
    declared,
    kinds,
    unevaluated,
)
from tristore.events.registry.schema_side import Side, same, text

_MAX_STEPS = 4_000
# Members and items of all probes together; what is beyond is reported without an example.
_MAX_PROBED = 5_000_000
_MAX_ITEMS = 500
ANYTHING = "*"


class Inclusion:
    def __init__(self, writer: Side, reader: Side) -> None:
        self._writer = writer
        self._reader = reader
        self._samples = Sampler(writer)
        self._busy: set[tuple[str, str]] = set()
        self._steps = 0
        self._probed = 0

    def gaps(self) -> list[Gap]:
        """Between whole schemas; payloads are objects, whatever else a schema would allow."""
        return self._between(self._writer.root, self._reader.root, only="object")

    def _between(self, sent: Node, asked: Node, only: str | None = None) -> list[Gap]:
        key = (text(sent), text(asked))
        if key in self._busy or same(self._writer, sent, self._reader, asked):
            return []
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise TooComplex
        self._busy.add(key)
        found = [
            gap
            for shape in self._writer.shapes(sent)
            if only in (None, shape.kind)
            for gap in self._of_shape(shape, sent, asked)
        ]
        self._busy.discard(key)
        return distinct(found)

    def _of_shape(self, shape: Shape, sent: Node, asked: Node) -> Iterable[Gap]:
        values = shape.values()
        if values is None:
            return self._refusals(shape, asked)
        possible = [v for v in values if self._writer.accepts(sent, v)]
        refused = [v for v in possible if not self._reader.accepts(asked, v)]
        return [Gap((), "value", value, None, [value]) for value in refused]

    def _refusals(self, shape: Shape, asked: Node) -> list[Gap]:
        if isinstance(asked, bool):
            return [] if asked else [self._gap(shape, "allowed", None, None)]
        found: list[Gap] = []
        if "$ref" in asked:
            found += self._refusals(shape, self._reader.resolve(asked["$ref"]))
        for sub in listed(asked, "allOf"):
            found += self._refusals(shape, sub)
        for choose in (self._any_of, self._one_of, self._opaque, self._plain):
            found += choose(shape, asked)
        return found

    def _any_of(self, shape: Shape, asked: Part) -> list[Gap]:
        return self._closest(shape, self._near(shape, listed(asked, "anyOf")))

    def _one_of(self, shape: Shape, asked: Part) -> list[Gap]:
        near = self._near(shape, listed(asked, "oneOf"))
        if len(near) > 1 and any(not self._refusals(shape, choice) for choice in near):
            return [self._gap(shape, "oneOf", None, None)]
        return self._closest(shape, near)

    def _near(self, shape: Shape, choices: list[Node]) -> list[Node]:
        """The choices that may accept a value of the shape; all, where none may."""
        near = [c for c in choices if not apart(self._writer, shape, self._reader, c)]
        return near or choices

    def _closest(self, shape: Shape, choices: list[Node]) -> list[Gap]:
        return min((self._refusals(shape, choice) for choice in choices), key=len, default=[])

    def _opaque(self, shape: Shape, asked: Part) -> Iterator[Gap]:
        """Keywords that are only recognised, or fulfilled whichever way they decide."""
        for keyword in ("not", "contains", "propertyNames"):
            if keyword in asked and not self._has(shape, asked, *_TOGETHER[keyword]):
                if not (keyword == "propertyNames" and self._names_fit(shape, asked[keyword])):
                    if _KIND.get(keyword, shape.kind) == shape.kind:
                        yield self._gap(shape, keyword, None, asked[keyword])
        if "if" in asked and not self._has(shape, asked, "if", "then", "else"):
            for branch in ("then", "else"):
                yield from self._refusals(shape, asked.get(branch, True))
        if shape.kind == "object" and not self._has(shape, asked, "dependentSchemas"):
            for name, sub in mapped(asked, "dependentSchemas").items():
                if self._sends(shape, name):
                    yield from self._refusals(shape, sub)
        yield from self._unevaluated(shape, asked)

    def _unevaluated(self, shape: Shape, asked: Part) -> Iterator[Gap]:
        closing = unevaluated(self._reader.root, asked)
        if closing is not None and shape.kind == "object":
            yield from self._members(shape, closing)
            return
        keyword = {"object": "unevaluatedProperties", "array": "unevaluatedItems"}.get(shape.kind)
        if keyword in asked and composed(asked) and asked[keyword] is not True:
            yield self._gap(shape, keyword, None, asked[keyword])

    def _has(self, shape: Shape, asked: Part, *keywords: str) -> bool:
        """Some part of the shape says just the same with these keywords."""
        wanted: Node = {k: asked[k] for k in keywords if k in asked}
        return any(
            same(self._writer, {k: part[k] for k in keywords if k in part}, self._reader, wanted)
            for part in shape.parts
        )

    def _names_fit(self, shape: Shape, asked: Node) -> bool:
        patterned = any(mapped(part, "patternProperties") for part in shape.parts)
        closed = shape.others()[0] is False and not patterned
        return closed and all(self._reader.accepts(asked, name) for name in shape.names)

    def _sends(self, shape: Shape, name: str) -> bool:
        node, unspoken = shape.member(name)
        return node is not False and (not unspoken or name in shape.required)

    def _plain(self, shape: Shape, asked: Part) -> list[Gap]:
        missing = _split(shape.kind) - kinds({"type": asked["type"]}) if "type" in asked else set()
        if missing:
            return [self._gap(shape, "type", kind, asked["type"]) for kind in sorted(missing)]
        found = []
        for keyword in ("enum", "const"):
            if keyword in asked:
                found.append(self._gap(shape, keyword, None, asked[keyword]))
        for clash in clashes(shape, asked):
            probes = self._samples.of_shape(shape, clash.hints)
            found.append(Gap((), clash.keyword, clash.allowed, clash.asked, probes))
        if shape.kind == "array":
            found += self._items(shape, asked)
        if shape.kind == "object":
            found += self._members(shape, asked)
        return found

    def _items(self, shape: Shape, asked: Part) -> Iterator[Gap]:
        reader = Shape("array", (asked,))
        last = max(shape.positions, reader.positions)
        base = self._base_list(shape, max(last + 1, shape.most("minItems")))
        for index in range(last + 1):
            if shape.longest is None or index < shape.longest:
                step: str | int = index if index < last else ANYTHING
                inner = self._between(shape.item(index), reader.item(index))
                yield from self._inside(inner, step, _at(base, index, shape.most("minItems")))

    def _base_list(self, shape: Shape, length: int) -> list[Any]:
        """Items of the shape, to be tried with one of them changed; fewer where one is unknown."""
        found: list[Any] = []
        for index in range(min(length, _MAX_ITEMS)):
            values = self._samples.of(shape.item(index), 1)
            if not values:
                break
            # Not all alike, because they may have to differ.
            found.append(values[index % len(values)])
        return found

    def _members(self, shape: Shape, asked: Part) -> Iterator[Gap]:
        bases = self._bases(shape)
        for name in sorted(set(asked.get("required", ())) - shape.required):
            yield Gap((name,), "required", False, True, [v for v in bases if name not in v])
        for name in sorted(shape.known | set(mapped(asked, "properties"))):
            if self._sends(shape, name):
                wanted = both(declared(asked, name) or [additional(asked)[0]])
                inner = self._between(shape.member(name)[0], wanted)
                yield from self._inside(inner, name, _with(bases, name))
        for pattern, sub, wanted in self._patterned(shape, asked):
            yield from self._inside(self._between(sub, wanted), pattern, lambda value: ())
        yield from self._unnamed(shape, asked, bases)

    def _unnamed(self, shape: Shape, asked: Part, bases: list[dict[str, Any]]) -> Iterator[Gap]:
        others, is_open = shape.others()
        wanted = [additional(asked)[0]]
        # What is open to the writer was not sent under a pattern the reader only now has.
        wanted += [] if is_open else mapped(asked, "patternProperties").values()
        if others is False:
            return
        if both(wanted) is False:
            probe = next(iter(self._samples.of(others)), 1)
            yield Gap((), "additionalProperties", True, False, list(_with(bases, UNNAMED)(probe)))
            return
        inner = self._between(others, both(wanted))
        yield from self._inside(inner, ANYTHING, _with(bases, UNNAMED))

    def _patterned(self, shape: Shape, asked: Part) -> Iterator[tuple[str, Node, Node]]:
        """For each pattern of the writer: what it sends, and what the reader may ask of it."""
        theirs = mapped(asked, "patternProperties")
        for part in shape.parts:
            ours = mapped(part, "patternProperties")
            for pattern, sub in ours.items():
                new = [node for other, node in theirs.items() if other not in ours]
                beyond = [] if pattern in theirs else [additional(asked)[0]]
                yield (
                    pattern,
                    sub,
                    both([*new, *beyond, *([theirs[pattern]] if not beyond else [])]),
                )

    def _bases(self, shape: Shape) -> list[dict[str, Any]]:
        """Objects of the shape, to be tried with one property changed."""
        found = [self._samples.least_object(shape), self._samples.full_object(shape)]
        return [value for value in found if value is not None]

    def _inside(
        self, inner: list[Gap], step: str | int, wrap: Callable[[Any], Iterable[Any]]
    ) -> Iterator[Gap]:
        for gap in inner:
            probes = []
            if self._probed < _MAX_PROBED:
                probes = [outer for value in gap.probes[:MOST] for outer in wrap(value)]
                self._probed += sum(map(len, probes))
            yield replace(gap, path=(step, *gap.path), probes=probes)

    def _gap(self, shape: Shape, keyword: str, sent: Any, asked: Any) -> Gap:
        return Gap((), keyword, sent, asked, self._samples.of_shape(shape))


_TOGETHER = {
    "not": ("not",),
    "contains": ("contains", "minContains", "maxContains"),
    "propertyNames": ("propertyNames",),
}
_KIND = {"contains": "array", "propertyNames": "object"}


def _with(bases: list[dict[str, Any]], name: str) -> Callable[[Any], Iterator[dict[str, Any]]]:
    return lambda value: ({**base, name: value} for base in bases)


def _at(base: list[Any], index: int, least: int) -> Callable[[Any], Iterator[list[Any]]]:
    def lists(value: Any) -> Iterator[list[Any]]:
        found = [*base[:index], value, *base[index + 1 : least]]
        if len(found) >= max(index + 1, least):
            yield found

    return lists


def _split(kind: str) -> frozenset[str]:
    return frozenset(("integer", "fraction")) if kind == "number" else frozenset((kind,))
