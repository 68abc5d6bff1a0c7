"""Page cursors of a search: opaque texts, of use only to the search they were made for."""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from tristore.errors import InvalidQuery
from tristore.metastore.fields import storable
from tristore.metastore.ordering import Key, Position

_NOT_OURS = "that cursor was not made here; start without one"
# Digits a number in the metadata can have, by far: a double's largest has 309.
_MOST_DIGITS = 1000


def fingerprint(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def write(mark: str, position: Position) -> str:
    values = [
        str(value) if isinstance(value, Decimal | int) else value for value in position.values
    ]
    made = orjson.dumps([mark, values, position.id])
    return urlsafe_b64encode(made).decode().rstrip("=")


def read(text: str, mark: str, keys: Sequence[Key]) -> Position:
    try:
        padded = text + "=" * (-len(text) % 4)
        its_mark, values, number = orjson.loads(urlsafe_b64decode(padded))
        if its_mark != mark:
            raise InvalidQuery("that cursor belongs to another search; start without one")
        found = tuple(_value(key, value) for key, value in zip(keys, values, strict=True))
    except (ValueError, TypeError, InvalidOperation):
        raise InvalidQuery(_NOT_OURS) from None
    if type(number) is not int or not 0 <= number < 2**63:
        raise InvalidQuery(_NOT_OURS)
    return Position(found, number)


def _value(key: Key, value: Any) -> Any:
    if value is None and key.nullable:
        return None
    if not isinstance(value, str) or not storable(value):
        raise ValueError
    if key.kind is Decimal:
        return _number(value)
    if key.kind is datetime:
        return _time(value)
    return value


def _number(text: str) -> Decimal:
    found = Decimal(text)
    if not found.is_finite() or abs(found.adjusted()) > _MOST_DIGITS:
        raise ValueError
    return found


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or not 1 < found.year < 9999:
        raise ValueError
    return found
