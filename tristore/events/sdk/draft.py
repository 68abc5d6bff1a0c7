"""A draft: what a caller gave, turned into an event that is checked and ready to send."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from tristore.errors import InvalidEvent, Violation
from tristore.events import strictjson
from tristore.events.envelope import Event, new_id, now_text
from tristore.events.payload import JsonObject
from tristore.events.registry.registry import Registry

_CAMEL = {
    "correlation_id": "correlationId",
    "occurred_at": "occurredAt",
    "schema_version": "schemaVersion",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """`id` is fixed here, before the first try; every retry carries the same bytes."""

    id: str
    body: bytes

    @classmethod
    def of(cls, given: Mapping[str, Any], registry: Registry) -> "Draft":
        """Raises InvalidEvent with every violation of envelope and schema."""
        fields = {"id": new_id(), "occurredAt": now_text(), **_wire(given)}
        body = _dumps(fields)
        try:
            value = strictjson.loads(body)
        except strictjson.StrictJsonError as error:
            raise _refusal(str(error)) from None
        _check(value, registry)
        return cls(value["id"], body)


def _wire(given: Mapping[str, Any]) -> dict[str, Any]:
    """The names of the wire, without the fields that say nothing."""
    fields = {_CAMEL.get(name, name): value for name, value in given.items() if value is not None}
    if isinstance(payload := fields.get("payload"), JsonObject):
        fields["payload"] = payload.to_json()
    return fields


def _dumps(fields: dict[str, Any]) -> bytes:
    try:
        body = orjson.dumps(fields, option=orjson.OPT_UTC_Z)
    except TypeError as error:
        raise _refusal(str(error)) from None
    # The encoder writes NaN as null, and null would be stored as if it had been meant.
    if b"null" in body and (path := _not_finite(fields)) is not None:
        violation = Violation(path, "NaN and Infinity are not JSON")
        raise InvalidEvent("envelope_invalid", [violation])
    return body


def _not_finite(value: Any, path: str = "") -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    if isinstance(value, Mapping):
        items = [(f"{path}/{key}", item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        items = [(f"{path}/{index}", item) for index, item in enumerate(value)]
    else:
        return None
    found = (_not_finite(item, place) for place, item in items)
    return next((place for place in found if place is not None), None)


def _check(value: dict[str, Any], registry: Registry) -> None:
    try:
        registry.check(Event.parse(value))
    except InvalidEvent as refusal:
        if refusal.reason != "envelope_invalid":
            raise
        listed = [*refusal.violations, *_schema_violations(value, registry)]
        raise InvalidEvent(refusal.reason, listed) from None


def _schema_violations(value: dict[str, Any], registry: Registry) -> list[Violation]:
    """What else is wrong with an event whose envelope is broken."""
    type_, payload = value.get("type"), value.get("payload")
    if not (isinstance(type_, str) and isinstance(payload, dict)):
        return []
    stand_in = Event.model_construct(
        id="", type=type_, source="", occurred_at=datetime.now(UTC), payload=payload
    )
    try:
        registry.check(stand_in)
    except InvalidEvent as refusal:
        return refusal.violations
    return []


def _refusal(message: str) -> InvalidEvent:
    return InvalidEvent("envelope_invalid", [Violation("", message)])
