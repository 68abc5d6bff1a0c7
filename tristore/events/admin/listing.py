"""What every list of the bus takes from outside: times, patterns, a limit and a page cursor."""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tristore.errors import CursorStale, InvalidQuery


def _time_text(value: object) -> object:
    # A bare number would be read as seconds since 1970.
    if isinstance(value, str) and "T" not in value.upper():
        raise ValueError("must be an RFC 3339 time such as 2026-11-15T10:00:00Z")
    return value


def _sane_year(value: datetime) -> datetime:
    if not 1970 <= value.year < 9999:
        raise ValueError("the year must lie between 1970 and 9998")
    return value


def _storable(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain NUL")
    return value


Instant = Annotated[AwareDatetime, BeforeValidator(_time_text), AfterValidator(_sane_year)]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_storable)]


class Listing(BaseModel):
    """Unknown parameters are refused: a mistyped filter would silently show everything."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    limit: int = Field(100, ge=1, le=1000)
    cursor: Annotated[str, Field(max_length=1000)] | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """`a.b.c`, or `a.*` for everything below `a.`."""

    text: str
    is_prefix: bool

    @classmethod
    def parse(cls, given: str | None) -> "Pattern | None":
        if given is None or given == "*":
            return None
        is_prefix = given.endswith(".*")
        text = given[:-1] if is_prefix else given
        if "*" in text:
            raise InvalidQuery(f"{given!r}: a * stands only at the end, after a dot, as in a.b.*")
        return cls(text, is_prefix)

    @property
    def exact(self) -> str | None:
        return None if self.is_prefix else self.text

    @property
    def prefix(self) -> str | None:
        return self.text if self.is_prefix else None


def fingerprint(filters: Any) -> str:
    """What a cursor remembers of its list, to be refused by another."""
    return hashlib.sha256(repr(filters).encode()).hexdigest()[:16]


def write_cursor(epoch: str, filters: str, position: int | str) -> str:
    return urlsafe_b64encode(orjson.dumps([epoch, filters, position])).decode().rstrip("=")


def read_cursor(text: str, epoch: str, filters: str) -> Any:
    """The position in a cursor that was made for this list of this log."""
    try:
        padded = text + "=" * (-len(text) % 4)
        its_epoch, its_filters, position = orjson.loads(urlsafe_b64decode(padded))
    except (ValueError, TypeError):
        raise InvalidQuery("that cursor was not made here; start without one") from None
    if its_filters != filters:
        raise InvalidQuery("that cursor belongs to other filters; start without one")
    if its_epoch != epoch:
        raise CursorStale("the log was restored since that page; start without a cursor")
    return position


def read_number(text: str, epoch: str, filters: str) -> int:
    position = read_cursor(text, epoch, filters)
    if not isinstance(position, int) or not 0 <= position < 2**63:
        raise InvalidQuery("that cursor was not made here; start without one")
    return position
