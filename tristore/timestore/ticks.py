"""Where the marks of an axis stand and what they are called: sizes in bytes, times in UTC."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_STEPS = [1, 5, 10, 15, 30]
_STEPS += [n * _MINUTE for n in (1, 2, 5, 10, 15, 30)]
_STEPS += [n * _HOUR for n in (1, 2, 3, 6, 12)]
_STEPS += [n * _DAY for n in (1, 2, 7, 14)]
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 600, 1200)


def size(count: float) -> str:
    """1500 is `1.5 kB`; as short as three digits can say it."""
    sign, left = ("-" if count < 0 else ""), abs(count)
    for unit in _UNITS:
        shown = f"{left:.3g}" if left < 999.5 else ""
        if shown or unit == _UNITS[-1]:
            return f"{sign}{shown or f'{left:,.0f}'} {unit}"
        left /= 1000
    raise AssertionError("the last unit takes what is left")


def even(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`; always some, 0 among them."""
    low, high = min(low, 0), max(high, 0)
    rough = max((high - low) / most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [n * step for n in range(first, max(last, first + 1) + 1)]


def times(begin: datetime, end: datetime, most: int = 9) -> list[tuple[datetime, str, str]]:
    """Moments from `begin` on, each with its label and, where it begins anew, the wider one."""
    span = (end - begin).total_seconds()
    step = next((step for step in _STEPS if span / step <= most), None)
    if step is None:
        return _labelled(_months(begin, end, most), "%b", "%Y")
    moments = list(_moments(begin, end, step))
    if step >= _DAY:
        return _labelled(moments, "%-d %b", "%Y")
    return _labelled(moments, "%H:%M:%S" if step < _MINUTE else "%H:%M", "%-d %b %Y")


def _moments(begin: datetime, end: datetime, step: int) -> Iterator[datetime]:
    # Weeks begin on Mondays; 1970 did on a Thursday.
    offset = 4 * _DAY if step % (7 * _DAY) == 0 else 0
    at = math.ceil((begin.timestamp() - offset) / step) * step + offset
    while at <= end.timestamp():
        yield datetime.fromtimestamp(at, UTC)
        at += step


def _months(begin: datetime, end: datetime, most: int) -> list[datetime]:
    first, last = (moment.year * 12 + moment.month - 1 for moment in (begin, end))
    step = next((step for step in _MONTHS if (last - first) / step <= most), _MONTHS[-1])
    numbers = range(-(-first // step) * step, last + 1, step)
    found = [datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC) for number in numbers]
    return [moment for moment in found if begin <= moment <= end + timedelta(seconds=1)]


def _labelled(moments: list[datetime], near: str, wide: str) -> list[tuple[datetime, str, str]]:
    shown, last = [], ""
    for moment in moments:
        around = moment.strftime(wide)
        shown.append((moment, moment.strftime(near), around if around != last else ""))
        last = around
    return shown
