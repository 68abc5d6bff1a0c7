"""What every typed payload can do: become the JSON object its schema describes."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import Any, ClassVar

from tristore.errors import InvalidEvent, Violation

_PLAIN = frozenset((str, int, bool))


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObject:
    def to_json(self) -> dict[str, object]:
        """Names in camelCase; fields that are None are left out."""
        found: dict[str, object] = {}
        for name, key in _names(type(self)):  # type: ignore[arg-type]
            value = getattr(self, name)
            if value is not None:
                found[key] = value if type(value) in _PLAIN else _plain(key, value)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload(JsonObject):
    TYPE: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int]


@cache
def _names(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, _camel(field.name)) for field in fields(kind))


@cache
def _camel(name: str) -> str:
    # A field named like a Python keyword (`from_`) carries an underscore at its end.
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain(key: str, value: object) -> object:
    if isinstance(value, JsonObject):
        return value.to_json()
    if isinstance(value, tuple):
        return [item if type(item) in _PLAIN else _plain(key, item) for item in value]
    if isinstance(value, datetime):
        return _time(key, value)
    return value


def _time(key: str, value: datetime) -> str:
    if value.tzinfo is None:
        message = "the time has no zone; give an aware datetime"
        raise InvalidEvent("schema_invalid", [Violation(f"/payload/{key}", message)])
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
