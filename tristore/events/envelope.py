"""The envelope: the one shape every event has, checked with every violation listed."""

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self
from uuid import UUID

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from tristore.errors import InvalidEvent, Violation
from tristore.events import strictjson

MAX_PAYLOAD_BYTES = 256 * 1024
MAX_METADATA_BYTES = 16 * 1024
MAX_CORRELATION_ID = 200
MAX_AHEAD_SECONDS = 24 * 3600
_DATE = re.compile(r"\d{4}-", re.ASCII)
_TYPE = re.compile(r"[a-z0-9][a-z0-9_-]*(\.[a-z0-9][a-z0-9_-]*){2,}")


def new_id() -> str:
    """A UUIDv7: unique, and near its neighbours in an index because time comes first."""
    stamp = time.time_ns() // 1_000_000
    value = (stamp << 80) | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | (0x7 << 76)
    return str(UUID(int=value & ~(0x3 << 62) | (0x2 << 62)))


def check_type(value: str) -> str:
    if len(value) > 200 or not _TYPE.fullmatch(value):
        raise ValueError("must read service.entity.action: lower case, dots, at most 200 long")
    return value


def _time_text(value: object) -> object:
    # Numbers would be read as seconds since 1970; the contract has text only.
    # So would digits alone in a text.
    if isinstance(value, datetime) or (isinstance(value, str) and _DATE.match(value)):
        return value
    raise ValueError("must be an RFC 3339 time")


def _in_utc(value: datetime) -> datetime:
    if value.timestamp() - time.time() > MAX_AHEAD_SECONDS:
        raise ValueError("lies more than 24 hours in the future")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies before the year 1 in UTC") from None


def _at_most(limit: int) -> AfterValidator:
    def check(value: dict[str, Any]) -> dict[str, Any]:
        if (size := len(orjson.dumps(value))) > limit:
            raise ValueError(f"is {size} bytes; the most is {limit}")
        return value

    return AfterValidator(check)


Time = Annotated[
    AwareDatetime, BeforeValidator(_time_text), Field(strict=False), AfterValidator(_in_utc)
]


class Event(BaseModel):
    """Immutable; `parse` is the only door for what comes from outside."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", strict=True, frozen=True
    )

    id: Annotated[str, StringConstraints(min_length=1, max_length=128)]
    type: Annotated[str, AfterValidator(check_type)]
    source: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    occurred_at: Time
    payload: Annotated[dict[str, Any], _at_most(MAX_PAYLOAD_BYTES)]
    correlation_id: Annotated[str, StringConstraints(max_length=MAX_CORRELATION_ID)] | None = None
    ttl: Annotated[int, Field(gt=0, lt=2**63)] | None = None
    metadata: Annotated[dict[str, Any], _at_most(MAX_METADATA_BYTES)] | None = None
    schema_version: Annotated[int, Field(ge=1, lt=2**31)] | None = None

    @classmethod
    def parse(cls, value: Any, defaults: Mapping[str, str] | None = None) -> Self:
        """An event from a strictly parsed JSON value; `defaults` fill what is absent."""
        if not isinstance(value, dict):
            raise InvalidEvent("envelope_invalid", [Violation("", "an event is a JSON object")])
        try:
            return cls.model_validate({**defaults, **value} if defaults else value)
        except ValidationError as error:
            raise InvalidEvent("envelope_invalid", _violations(error)) from None

    @classmethod
    def make(cls, type: str, payload: Mapping[str, Any], *, source: str, **fields: Any) -> Self:
        """An event of our own, held to the same rules as one from outside."""
        given = {"id": new_id(), "occurredAt": now_text(), "type": type, "source": source}
        given |= {"payload": payload} | {k: v for k, v in fields.items() if v is not None}
        try:
            # Not orjson: it writes NaN as null, which nobody would notice.
            text = json.dumps(given, allow_nan=False, ensure_ascii=False, default=time_text)
            return cls.parse(strictjson.loads(text.encode()))
        except (strictjson.StrictJsonError, TypeError, ValueError, AttributeError) as error:
            raise InvalidEvent("envelope_invalid", [Violation("", str(error))]) from None

    @classmethod
    def of_checked(cls, fields: dict[str, Any]) -> Self:
        """All the fields, by their Python names, of a value that is known to keep the rules.
        `model_construct` does the same in five times the time."""
        event = cls.__new__(cls)
        set_slot = object.__setattr__
        set_slot(event, "__dict__", fields)
        set_slot(event, "__pydantic_fields_set__", _FIELDS)
        set_slot(event, "__pydantic_extra__", None)
        set_slot(event, "__pydantic_private__", None)
        return event

    def to_json(self) -> dict[str, Any]:
        fields = self.model_dump(by_alias=True, exclude_none=True)
        fields["occurredAt"] = time_text(self.occurred_at)
        return fields

    def dumps(self) -> bytes:
        return orjson.dumps(self.to_json())

    def expired(self, now: datetime) -> bool:
        return self.ttl is not None and self.occurred_at + timedelta(milliseconds=self.ttl) < now

    def body_hash(self) -> bytes:
        """What makes two events with one id the same: what happened, not when it was stamped.

        Times, correlation ids and schema versions are left out because a publisher's retry, or
        the platform, may fill them in anew.
        """
        return hash_of(self.type, self.source, self.payload, self.ttl, self.metadata)


def hash_of(
    type: str,
    source: str,
    payload: Mapping[str, Any],
    ttl: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> bytes:
    body = {"type": type, "source": source, "payload": payload, "ttl": ttl, "metadata": metadata}
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).digest()


_FIELDS = set(Event.model_fields)


def time_text(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def now_text() -> str:
    return time_text(datetime.now(UTC))


def _violations(error: ValidationError) -> list[Violation]:
    return [
        Violation("".join(f"/{part}" for part in item["loc"]), _lower(item["msg"]))
        for item in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def _lower(message: str) -> str:
    """Pydantic's sentence, to stand after a path."""
    message = message.removeprefix("Value error, ").replace("valid dictionary", "JSON object")
    return message[:1].lower() + message[1:]
