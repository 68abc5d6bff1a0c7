"""A stretch of time in buckets of one width: which buckets a request means, and how many."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tristore.errors import InvalidQuery, TooBroad

MOST_BUCKETS = 10_000
BUCKET = r"^[1-9][0-9]{0,3}[smhdw]$"
HOUR = 3600
SECONDS = {"s": 1, "m": 60, "h": HOUR, "d": 24 * HOUR, "w": 7 * 24 * HOUR}
_WIDEST = 52 * SECONDS["w"]
_LAST = timedelta(days=7)
# Of a request that names no bucket: the first whose range is long enough to hold what was asked.
_CHOSEN = {3 * HOUR: "1m", 8 * 24 * HOUR: "1h", 50 * 24 * HOUR: "6h", 400 * 24 * HOUR: "1d"}
# Weeks begin on Mondays; 1970 did on a Thursday.
_MONDAY = 4 * 24 * HOUR


@dataclass(frozen=True, slots=True)
class Window:
    """`count` buckets of `width` seconds from `begin` (seconds since 1970) on."""

    begin: int
    width: int
    count: int

    @property
    def end(self) -> int:
        return self.begin + self.width * self.count

    @property
    def hourly(self) -> bool:
        """Whether every bucket begins and ends with an hour."""
        return self.begin % HOUR == 0 and self.width % HOUR == 0


def of(since: datetime | None, until: datetime | None, bucket: str | None, now: datetime) -> Window:
    """The whole buckets that hold the asked time; the last seven days unless it is said."""
    begin, end = span(since, until, now)
    width = _width(bucket or _fitting(end - begin))
    offset = _MONDAY if width % SECONDS["w"] == 0 else 0
    first, last = (int(begin) - offset) // width, -((offset - _up(end)) // width)
    if last - first > MOST_BUCKETS:
        raise TooBroad(
            f"that is {last - first:,} buckets, and an answer has {MOST_BUCKETS:,} at most; "
            "ask for a wider bucket or a shorter time"
        )
    return Window(first * width + offset, width, last - first)


def span(since: datetime | None, until: datetime | None, now: datetime) -> tuple[float, float]:
    """From and to, in seconds since 1970."""
    end = until or max(now, (since or now) + timedelta(seconds=1))
    begin = since or end - _LAST
    if begin >= end:
        raise InvalidQuery("`from` must lie before `to`")
    return begin.timestamp(), end.timestamp()


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _up(seconds: float) -> int:
    return -int(-seconds // 1)


def _fitting(seconds: float) -> str:
    return next((name for most, name in _CHOSEN.items() if seconds <= most), "1w")


def _width(bucket: str) -> int:
    if not re.match(BUCKET, bucket):
        raise InvalidQuery("a bucket is a number and one of s, m, h, d, w: 1h")
    width = int(bucket[:-1]) * SECONDS[bucket[-1]]
    if width > _WIDEST:
        raise InvalidQuery("a bucket is 52w wide at most")
    return width
