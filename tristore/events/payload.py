"""What every typed payload can do: become the JSON object its schema describes."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import ClassVar

from tristore.errors import InvalidEvent, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObject:
    def to_json(self) -> dict[str, object]:
        """Names in camelCase; fields that are None are left out."""
        found = {_camel(field.name): getattr(self, field.name) for field in fields(self)}
        return {key: _plain(key, value) for key, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload(JsonObject):
    TYPE: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int]


@cache
def _camel(name: str) -> str:
    # A field named like a Python keyword (`from_`) carries an underscore at its end.
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain(key: str, value: object) -> object:
    if isinstance(value, JsonObject):
        return value.to_json()
    if isinstance(value, tuple):
        return [_plain(key, item) for item in value]
    if isinstance(value, datetime):
        return _time(key, value)
    return value


def _time(key: str, value: datetime) -> str:
    if value.tzinfo is None:
        message = "the time has no zone; give an aware datetime"
        raise InvalidEvent("schema_invalid", [Violation(f"/payload/{key}", message)])
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
