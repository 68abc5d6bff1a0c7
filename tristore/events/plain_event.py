"""The quick way from a parsed value to an event; what is in any way unusual is left to the model.

The model lists every violation and takes five times as long. Here nothing is ever refused: the
answer is the very event the model would make, or None, and then the model decides.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson

from tristore.events.envelope import (
    MAX_AHEAD_SECONDS,
    MAX_METADATA_BYTES,
    MAX_PAYLOAD_BYTES,
    Event,
    check_type,
)

_NAMES = frozenset(
    "id type source occurredAt payload correlationId ttl metadata schemaVersion".split()
)
_REQUIRED = 5
# The way everybody writes times; Python alone would read more than the model does, and less.
_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII
)


def latest() -> datetime:
    """The last moment an event may have happened at, if it is looked at now."""
    return datetime.now(UTC) + timedelta(seconds=MAX_AHEAD_SECONDS - 1)


def plain_event(value: dict[str, Any], latest: datetime) -> Event | None:
    get = value.get
    event_id, type_, source, payload = get("id"), get("type"), get("source"), get("payload")
    # `type(…) is`, because a bool is an int, and a caller's own class may be anything.
    if not (
        value.keys() <= _NAMES
        and type(event_id) is str
        and 0 < len(event_id) <= 128
        and type(type_) is str
        and len(type_) <= 200
        and _is_type(type_)
        and type(source) is str
        and 0 < len(source) <= 200
        and type(payload) is dict
        and len(orjson.dumps(payload)) <= MAX_PAYLOAD_BYTES
        and (occurred_at := _time(get("occurredAt"), latest))
        and (len(value) == _REQUIRED or _are_plain(value))
    ):
        return None
    return Event.of_checked(
        {
            "id": event_id,
            "type": type_,
            "source": source,
            "occurred_at": occurred_at,
            "payload": payload,
            "correlation_id": get("correlationId"),
            "ttl": get("ttl"),
            "metadata": get("metadata"),
            "schema_version": get("schemaVersion"),
        }
    )


@lru_cache(maxsize=4096)
def _is_type(text: str) -> bool:
    try:
        return bool(check_type(text))
    except ValueError:
        return False


def _time(text: Any, latest: datetime) -> datetime | None:
    if type(text) is not str or not _TIME.fullmatch(text):
        return None
    try:
        found = datetime.fromisoformat(text)
        found = found if found.tzinfo is UTC else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if found <= latest else None


def _are_plain(value: dict[str, Any]) -> bool:
    """The fields that need not be there."""
    correlation_id, metadata = value.get("correlationId"), value.get("metadata")
    return (
        (correlation_id is None or (type(correlation_id) is str and len(correlation_id) <= 200))
        and _is_number(value.get("ttl"), 2**63)
        and _is_number(value.get("schemaVersion"), 2**31)
        and (metadata is None or _is_metadata(metadata))
    )


def _is_number(value: Any, end: int) -> bool:
    return value is None or (type(value) is int and 0 < value < end)


def _is_metadata(value: Any) -> bool:
    return type(value) is dict and len(orjson.dumps(value)) <= MAX_METADATA_BYTES
