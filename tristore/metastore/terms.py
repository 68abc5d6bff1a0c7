"""One `field:value` of the one-line syntax: its short names, units and stars."""

import re
from datetime import timedelta
from typing import Any

from tristore.errors import InvalidQuery
from tristore.metastore import fields, filters, values
from tristore.metastore.fields import Field, Kind
from tristore.metastore.filters import And, Leaf, Node, Not

# The fields of the filestore's own object have short names too.
_SHORT: dict[str, Any] = {
    "tag": "tags",
    "created": "createdAt",
    "updated": "updatedAt",
    "deleted": "deletedAt",
    "path": ["metadata", "filestore", "path"],
    "mount": ["metadata", "filestore", "mount"],
    "state": ["metadata", "filestore", "state"],
    "size": ["metadata", "filestore", "sizeBytes"],
}
_ORDERED = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{unit}b": 1000**power for power, unit in enumerate("kmgt", 1)}
_UNITS |= {f"{unit}ib": 1024**power for power, unit in enumerate("kmgt", 1)}
_NUMBER = re.compile(r"(?P<number>-?\d{1,15}(?:\.\d{1,15})?)(?P<unit>(?:[kmgt]i?)?b)?", re.I)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WORDS = {"true": True, "false": False, "null": None}


def read(name: str, sign: str, value: str, *, quoted: bool) -> Node:
    """The condition a term stands for; `quoted` values are texts, stars and all."""
    field = fields.parse(_SHORT.get(name, name))
    if field.kind is Kind.WORDS:
        raise InvalidQuery("words to look for stand alone, without a field")
    if name == "path":
        # Paths are kept without the slash that people write at their beginning.
        value = value.removeprefix("/")
    if sign == "!=":
        return Not(_same(field, value, quoted))
    if sign in (":", "="):
        return _same(field, value, quoted)
    return _leaf(field, *_comparison(field, sign, value, quoted))


def _comparison(field: Field, sign: str, value: str, quoted: bool) -> tuple[str, Any]:
    if sign == "~":
        return "contains", value
    return _ORDERED[sign], _comparable(field, value, quoted)


def _comparable(field: Field, value: str, quoted: bool) -> Any:
    if quoted or field.kind not in (Kind.JSON, Kind.NUMBER):
        return value
    found = number(value)
    return value if found is None else found


def _same(field: Field, value: str, quoted: bool) -> Node:
    if not quoted and "*" in value:
        return _starred(field, value)
    if field.kind is Kind.TAGS:
        return _leaf(field, "array_contains", value)
    if field.kind is Kind.TIME and _DAY.fullmatch(value):
        day = values.instant(value)
        return And((Leaf(field, "gte", day), Leaf(field, "lt", day + timedelta(days=1))))
    if field.kind is Kind.JSON:
        return _leaf(field, "in", _meanings(value, quoted))
    return _leaf(field, "eq", _comparable(field, value, quoted))


def _starred(field: Field, value: str) -> Node:
    if value == "*":
        return _leaf(field, "exists", True)
    if "*" in value[:-1]:
        raise InvalidQuery("a * stands only at the end; put a value with stars in quotes")
    return _leaf(field, "prefix", value[:-1])


def _meanings(value: str, quoted: bool) -> list[Any]:
    """What a bare word may mean where any JSON can stand: a text, or what it looks like."""
    found: list[Any] = [value]
    if not quoted and value in _WORDS:
        found.append(_WORDS[value])
    if not quoted and (as_number := number(value)) is not None:
        found.append(as_number)
    return found


def number(text: str) -> int | float | None:
    """`10MB` and `10MiB` are numbers of bytes."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    factor = _UNITS[(found["unit"] or "").lower()]
    if "." not in found["number"]:
        made = int(found["number"]) * factor
        return made if abs(made) < 2**63 else float(made)
    return float(found["number"]) * factor


def _leaf(field: Field, op: str, value: Any) -> Leaf:
    try:
        return filters.leaf(field, op, value, "")
    except InvalidQuery as error:
        raise InvalidQuery(f"{field.name}: {str(error).partition(': ')[2]}") from None
