"""Partition values as the spans of time they stand for."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# A value is an hour, a day or a month, told apart by how long it is written.
_FORMATS = {13: "%Y-%m-%dT%H", 10: "%Y-%m-%d", 7: "%Y-%m"}


@dataclass(frozen=True, slots=True)
class Period:
    """`start` is included, `end` is not."""

    start: datetime
    end: datetime

    @classmethod
    def of(cls, value: str) -> "Period":
        start = datetime.strptime(value, _FORMATS[len(value)]).replace(tzinfo=UTC)
        try:
            return cls(start, _end(start, len(value)))
        except OverflowError:
            return cls(start, datetime.max.replace(tzinfo=UTC))

    def meets(self, after: datetime | None, before: datetime | None) -> bool:
        """Whether some of it lies in `[after, before)`."""
        return (after is None or self.end > after) and (before is None or self.start < before)


def _end(start: datetime, length: int) -> datetime:
    if length == 13:
        return start + timedelta(hours=1)
    if length == 10:
        return start + timedelta(days=1)
    return (start + timedelta(days=32)).replace(day=1)
