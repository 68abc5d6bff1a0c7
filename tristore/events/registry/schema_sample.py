"""Values a schema accepts: short, typical, and at the edges of what it allows.

Nothing here is trusted: the engine is asked about every value before it is used.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from tristore.events.registry import pattern
from tristore.events.registry.schema_document import Node
from tristore.events.registry.schema_shape import Shape
from tristore.events.registry.schema_side import Side, text

MOST = 16
_DEEPEST = 6
_LONGEST = 3_000
UNNAMED = "somethingElse"
FORMATS = {
    "date": "2026-11-15",
    "time": "10:00:00Z",
    "date-time": "2026-11-15T10:00:00Z",
    "duration": "P1DT2H",
    "email": "ann@example.com",
    "idn-email": "ann@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/a",
    "uri-reference": "/a/b",
    "iri": "https://example.com/a",
    "iri-reference": "/a/b",
    "uuid": "01933b1c-6f70-7d08-8a55-91be02c4d6a3",
    "uri-template": "/a/{b}",
    "json-pointer": "/a/b",
    "relative-json-pointer": "1/a",
}

Numbers = Iterable[int | float]


class Sampler:
    def __init__(self, side: Side) -> None:
        self._side = side
        self._known: dict[str, list[Any]] = {}

    def of(self, node: Node, depth: int = 0) -> list[Any]:
        """Accepted values, the plainest first; empty where none was found."""
        key = f"{depth} {text(node)}"
        if key not in self._known:
            each = [self.of_shape(shape, (), depth) for shape in self._side.shapes(node)]
            # One of each shape first, so that a few values show them all.
            mixed = [v for row in itertools.zip_longest(*each, fillvalue=_NONE) for v in row]
            self._known[key] = self.accepted(node, mixed)
        return self._known[key]

    def accepted(self, node: Node, values: Iterable[Any]) -> list[Any]:
        found: dict[str, Any] = {}
        for value in values:
            if value is not _NONE and len(found) < MOST and self._side.accepts(node, value):
                found.setdefault(text(value), value)
        return list(found.values())

    def of_shape(self, shape: Shape, hints: Numbers = (), depth: int = 0) -> list[Any]:
        """Values that probably have this shape; `hints` are numbers worth trying."""
        if (listed := shape.values()) is not None:
            return listed[: 4 * MOST]
        if depth > _DEEPEST:
            return [[]] if shape.kind == "array" else []
        if shape.kind == "string":
            return list(_strings(shape, hints))
        if shape.kind in ("integer", "number"):
            return list(_numbers(shape, hints))
        if shape.kind == "array":
            return list(self._arrays(shape, hints, depth))
        return list(self._objects(shape, hints, depth))

    def _arrays(self, shape: Shape, hints: Numbers, depth: int) -> Iterator[list[Any]]:
        most = shape.longest
        for length in _lengths(shape.most("minItems"), most, hints, 200):
            rows = [self.of(shape.item(index), depth + 1) for index in range(length)]
            if all(rows):
                yield [row[0] for row in rows]
                yield [row[index % len(row)] for index, row in enumerate(rows)]

    def least_object(self, shape: Shape, depth: int = 0) -> dict[str, Any] | None:
        """Only what is required; None where that has no known value."""
        found = {}
        for name in sorted(shape.required):
            values = self.of(shape.member(name)[0], depth + 1)
            if not values:
                return None
            found[name] = values[0]
        return found

    def full_object(self, shape: Shape, depth: int = 0) -> dict[str, Any]:
        """Every property that is named and has a known value."""
        found = {}
        for name in sorted(shape.names | shape.required):
            if values := self.of(shape.member(name)[0], depth + 1):
                found[name] = values[0]
        return found

    def _objects(self, shape: Shape, hints: Numbers, depth: int) -> Iterator[dict[str, Any]]:
        least, full = self.least_object(shape, depth), self.full_object(shape, depth)
        if least is not None:
            yield least
            yield from ({**least, name: value} for name, value in full.items())
            others = self.of(shape.others()[0], depth + 1)[:1]
            for count in [*_lengths(shape.most("minProperties"), None, hints, 200), 1]:
                missing = range(max(count - len(least), 0))
                yield {**least, **{f"{UNNAMED}{n or ''}": v for n in missing for v in others}}
        yield full


class _None:
    """Stands where there is no value; `null` is one."""


_NONE = _None()


def _strings(shape: Shape, hints: Numbers) -> Iterator[str]:
    for found in shape.each("format"):
        if found in FORMATS:
            yield FORMATS[found]
    for found in shape.each("pattern"):
        yield from pattern.samples(found)
    for length in _lengths(shape.most("minLength"), shape.least("maxLength"), hints, _LONGEST):
        yield ("abcdefghij" * (length // 10 + 1))[:length]
    yield from ("text", "A B", "0", "é", "-", "a\nb")


def _lengths(least: int, most: int | None, hints: Numbers, longest: int) -> list[int]:
    near = [int(hint) + step for hint in hints for step in (0, -1, 1)]
    wanted = [least, least + 1, *near, *([most] if most is not None else [])]
    usable = [n for n in wanted if least <= n <= longest and (most is None or n <= most)]
    return list(dict.fromkeys(usable))


def _numbers(shape: Shape, hints: Numbers) -> Iterator[int | float]:
    keywords = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    edges = [*hints, *(edge for keyword in keywords for edge in shape.each(keyword))]
    steps = [step for step in shape.each("multipleOf") if step] or [1]
    yield from (0, 1, 1.5)
    for edge in edges:
        yield from (edge, edge + 1, edge - 1, edge + 0.5, edge - 0.5)
        for step in steps:
            yield from ((edge // step + n) * step for n in (-1, 0, 1, 2))
    yield from (n * step for step in steps for n in (1, 2, 3, -1))
    yield from (-1, 0.1, 1000, 10**12, -(10**12), 0.123456)
