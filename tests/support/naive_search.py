"""What a search must find, written as a plain loop: the meaning of every filter and order."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tristore.metastore.fields import Field, Kind
from tristore.metastore.filters import And, Leaf, Node, Not, Or
from tristore.metastore.model import Record, same_json
from tristore.metastore.ordering import Sort

MISSING = object()
INDEXED_CHARACTERS = 200


@dataclass(frozen=True)
class Row:
    """A record, its number, and the strings free words look at in its namespace."""

    id: int
    record: Record
    text_fields: Sequence[Sequence[str]]


def holds(node: Node, row: Row) -> bool:
    if isinstance(node, And):
        return all(holds(part, row) for part in node.parts)
    if isinstance(node, Or):
        return any(holds(part, row) for part in node.parts)
    if isinstance(node, Not):
        return not holds(node.part, row)
    if node.field.kind is Kind.WORDS:
        return _matches(node.value, row)
    return _leaf(node, value_of(node.field, row.record))


def value_of(field: Field, record: Record) -> Any:
    if field.kind is Kind.JSON:
        return at(record.metadata, field.path)
    found = getattr(record, field.column)
    return MISSING if found is None else found


def at(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and _position(key, value) is not None:
            value = value[int(key)]
        else:
            return MISSING
    return value


def _position(key: str, value: list[Any]) -> int | None:
    try:
        return int(key) if -len(value) <= int(key) < len(value) else None
    except ValueError:
        return None


def _leaf(leaf: Leaf, found: Any) -> bool:
    op, value = leaf.op, leaf.value
    if op == "neq":
        return not _leaf(Leaf(leaf.field, "eq", value), found)
    if leaf.field.kind is Kind.TAGS:
        return _tags(op, value, found)
    if op == "exists":
        return bool(value) == (found is not MISSING)
    if op in ("eq", "in"):
        return any(_same(leaf.field, found, one) for one in (value if op == "in" else [value]))
    return found is not MISSING and _compare(op, found, value)


def _same(field: Field, found: Any, value: Any) -> bool:
    if field.kind is not Kind.JSON:
        return found is MISSING if value is None else found is not MISSING and found == value
    return found is not MISSING and same_json(found, value)


def _compare(op: str, found: Any, value: Any) -> bool:
    if op == "between":
        return _compare("gte", found, value[0]) and _compare("lte", found, value[1])
    if op == "has_key":
        return isinstance(found, dict) and value in found
    if op == "array_contains":
        return isinstance(found, list) and any(same_json(item, value) for item in found)
    if op in ("prefix", "contains"):
        is_text = isinstance(found, str)
        return is_text and (found.startswith(value) if op == "prefix" else value in found)
    if _class(found) != _class(value):
        return False
    low, high = _exact(found), _exact(value)
    return {"lt": low < high, "lte": low <= high, "gt": low > high, "gte": low >= high}[op]


def _class(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else type(value).__name__


def _exact(value: Any) -> Any:
    return Decimal(repr(value)) if _class(value) == "number" else value


def _tags(op: str, value: Any, found: Sequence[str]) -> bool:
    if op == "exists":
        return bool(value) == bool(found)
    if op == "prefix":
        return any(tag.startswith(value) for tag in found)
    if op == "array_contains":
        return value in found
    return set(value) == set(found) if op == "eq" else bool(set(value) & set(found))


def _matches(words: str, row: Row) -> bool:
    wanted = words.lower().split()
    paths = row.text_fields or [()]
    texts = [text for path in paths for text in _strings(at(row.record.metadata, path))]
    return any(_has(text.lower().split(), wanted) for text in texts)


def _has(words: list[str], wanted: list[str]) -> bool:
    size = len(wanted)
    return any(words[start : start + size] == wanted for start in range(len(words)))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for item in inner for text in _strings(item)]


def ordered(rows: Sequence[Row], sorts: Sequence[Sort]) -> list[Row]:
    found = sorted(rows, key=lambda row: row.id, reverse=sorts[-1].descending)
    for sort in reversed(sorts):
        for key in reversed(range(2)):
            keyed = [(_key(sort.field, row.record, key), row) for row in found]
            there = [pair for pair in keyed if pair[0] is not MISSING]
            there.sort(key=lambda pair: pair[0], reverse=sort.descending)
            found = [row for _, row in there] + [row for key, row in keyed if key is MISSING]
    return found


def _key(field: Field, record: Record, number: int) -> Any:
    """Metadata has two keys, its numbers and then its texts; anything else has one."""
    value = value_of(field, record)
    if field.kind is not Kind.JSON:
        return value if number == 0 else 0
    if number == 0:
        return _exact(value) if _class(value) == "number" else MISSING
    if isinstance(value, bool):
        return str(value).lower()
    return value[:INDEXED_CHARACTERS] if isinstance(value, str) else MISSING
