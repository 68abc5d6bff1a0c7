"""The values a filter compares with: which operations a kind of field takes, and with what."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tristore.errors import InvalidQuery
from tristore.metastore.fields import Field, Kind, storable

MAX_LISTED = 1000
MAX_TEXT = 10_000
ORDERED = ("lt", "lte", "gt", "gte", "between")
_ALWAYS = ("eq", "neq", "in", "exists")
_OPERATIONS = {
    Kind.TEXT: (*_ALWAYS, *ORDERED, "prefix", "contains"),
    Kind.NUMBER: (*_ALWAYS, *ORDERED),
    Kind.TIME: (*_ALWAYS, *ORDERED),
    Kind.TAGS: (*_ALWAYS, "array_contains", "prefix"),
    Kind.JSON: (*_ALWAYS, *ORDERED, "prefix", "contains", "has_key", "array_contains"),
    Kind.WORDS: ("matches",),
}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
Reader = Callable[[Any], Any]


def operations(kind: Kind) -> tuple[str, ...]:
    return _OPERATIONS[kind]


def read(field: Field, op: str, value: Any) -> Any:
    """The value, as the database compares it. Fields that may be null are compared with null by
    `eq`, `neq` and `in`."""
    if op == "exists":
        return _flag(value)
    one = _reader(field.kind, op)
    if op == "between":
        return _between(value, one)
    if op == "in" or (field.kind is Kind.TAGS and op in ("eq", "neq")):
        return _listed(value, partial(_or_null, field, one))
    return _or_null(field, one, value) if op in ("eq", "neq") else one(value)


def _reader(kind: Kind, op: str) -> Reader:
    if op in ("prefix", "contains", "has_key", "matches") or kind in (Kind.TEXT, Kind.TAGS):
        return text
    if kind is Kind.JSON:
        return _comparable if op in ORDERED else _scalar if op == "array_contains" else _any
    return number if kind is Kind.NUMBER else instant


def _or_null(field: Field, one: Reader, value: Any) -> Any:
    return None if value is None and field.nullable else one(value)


def text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT or not storable(value):
        raise InvalidQuery(f"must be a text of at most {MAX_TEXT} characters")
    return value


def number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidQuery("must be a number")
    return value


def instant(value: Any) -> datetime:
    """A time with its zone, or a day, which begins at midnight UTC."""
    try:
        found = datetime.fromisoformat(value)
        if _DAY.fullmatch(value):
            found = found.replace(tzinfo=UTC)
        if found.tzinfo is not None and 1970 <= found.year < 9999:
            return found.astimezone(UTC)
    except (TypeError, ValueError):
        pass
    raise InvalidQuery("must be a time such as 2026-11-15T10:00:00Z, or a day such as 2026-11-15")


def _flag(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise InvalidQuery("must be true or false")
    return value is not False


def _any(value: Any) -> Any:
    return text(value) if isinstance(value, str) else value


def _scalar(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise InvalidQuery("must be a text, a number, true, false or null")
    return _any(value)


def _comparable(value: Any) -> str | int | float:
    if isinstance(value, str):
        return text(value)
    try:
        return number(value)
    except InvalidQuery:
        raise InvalidQuery("must be a number or a text") from None


def _between(value: Any, one: Reader) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise InvalidQuery("must be a list of two values, the lower and the upper")
    low, high = map(one, value)
    if isinstance(low, str) != isinstance(high, str):
        raise InvalidQuery("must be two numbers or two texts")
    return low, high


def _listed(value: Any, one: Reader) -> tuple[Any, ...]:
    if not isinstance(value, list) or len(value) > MAX_LISTED:
        raise InvalidQuery(f"must be a list of at most {MAX_LISTED} values")
    return tuple(map(one, value))
