"""Rules for text, numbers and sizes: where one schema's shape allows what another refuses."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tristore.events.registry.schema_document import mapped
from tristore.events.registry.schema_sample import FORMATS
from tristore.events.registry.schema_shape import Part, Shape


@dataclass(frozen=True, slots=True)
class Clash:
    """A keyword that may refuse values of a shape: what the shape allows, what is asked, and
    numbers near which a refused value may lie."""

    keyword: str
    allowed: Any
    asked: Any
    hints: list[int | float] = field(default_factory=list)


def clashes(shape: Shape, asked: Part) -> Iterator[Clash]:
    if shape.kind == "string":
        yield from _strings(shape, asked)
    elif shape.kind in ("integer", "number"):
        yield from _numbers(shape, asked)
    elif shape.kind == "array":
        most = shape.longest
        yield from _size(shape.most("minItems"), most, asked, ("minItems", "maxItems"))
        unique = any(shape.each("uniqueItems")) or (most is not None and most < 2)
        if asked.get("uniqueItems") is True and not unique:
            yield Clash("uniqueItems", False, True, [2])
    elif shape.kind == "object":
        least, most = _sizes_of_object(shape)
        yield from _size(least, most, asked, ("minProperties", "maxProperties"))
        yield from _dependent(shape, asked)


def _strings(shape: Shape, asked: Part) -> Iterator[Clash]:
    least, most = shape.most("minLength"), shape.least("maxLength")
    yield from _size(least, most, asked, ("minLength", "maxLength"))
    if "pattern" in asked and asked["pattern"] not in shape.each("pattern"):
        yield Clash("pattern", _one(shape.each("pattern")), asked["pattern"])
    # The engine knows no other formats, and checks nothing for them.
    if asked.get("format") in FORMATS and asked["format"] not in shape.each("format"):
        yield Clash("format", _one(shape.each("format")), asked["format"])


def _size(least: int, most: int | None, asked: Part, names: tuple[str, str]) -> Iterator[Clash]:
    low, high = asked.get(names[0], 0), asked.get(names[1])
    if low > least:
        yield Clash(names[0], least, low, [low])
    if high is not None and (most is None or most > high):
        yield Clash(names[1], most, high, [high])


def _sizes_of_object(shape: Shape) -> tuple[int, int | None]:
    limits = shape.each("maxProperties")
    patterned = any(mapped(part, "patternProperties") for part in shape.parts)
    if shape.others()[0] is False and not patterned:
        limits.append(len(shape.names))
    return max(shape.most("minProperties"), len(shape.required)), min(limits, default=None)


def _dependent(shape: Shape, asked: Part) -> Iterator[Clash]:
    given: dict[str, set[str]] = {}
    for found in shape.each("dependentRequired"):
        for name, needed in found.items():
            given[name] = given.get(name, set()) | set(needed)
    for name, needed in asked.get("dependentRequired", {}).items():
        node, unspoken = shape.member(name)
        sent = node is not False and not (unspoken and name not in shape.required)
        if sent and set(needed) - shape.required - given.get(name, set()):
            yield Clash("dependentRequired", None, {name: needed})


def _numbers(shape: Shape, asked: Part) -> Iterator[Clash]:
    whole = shape.kind == "integer"
    for sign, names in ((1, _LOWER), (-1, _UPPER)):
        have = max([_bound(part, names, sign, whole) for part in shape.parts], default=_ANY)
        want = _bound(asked, names, sign, whole)
        if want > have:
            yield Clash(*_named(shape, asked, names), _edges(asked, names))
    step = asked.get("multipleOf")
    if step is not None and not _divides(
        step, [*shape.each("multipleOf"), *([1] if whole else [])]
    ):
        yield Clash("multipleOf", _one(shape.each("multipleOf")), step)


_LOWER = ("minimum", "exclusiveMinimum")
_UPPER = ("maximum", "exclusiveMaximum")
_ANY = (-math.inf, False)


def _bound(part: Part, names: tuple[str, str], sign: int, whole: bool) -> tuple[Any, bool]:
    """The bound as it reads from below (upper ones mirrored); whole numbers have no open ones."""
    found = [(sign * part[n], n == names[1]) for n in names if n in part]
    edge, is_open = max(found, default=_ANY)
    if not whole or math.isinf(edge):
        return edge, is_open
    return (math.floor(edge) + 1 if is_open else math.ceil(edge)), False


def _named(shape: Shape, asked: Part, names: tuple[str, str]) -> tuple[str, Any, Any]:
    keyword = next(name for name in reversed(names) if name in asked)
    return keyword, _one([*shape.each(names[0]), *shape.each(names[1])]), asked[keyword]


def _edges(asked: Part, names: tuple[str, str]) -> list[int | float]:
    return [asked[name] for name in names if name in asked]


def _divides(step: int | float, known: list[int | float]) -> bool:
    # Written out in decimal, as people mean it: 0.3 is a multiple of 0.1.
    return any((Fraction(str(one)) / Fraction(str(step))).denominator == 1 for one in known)


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values or None
