"""Downsampling as one would do it by hand, to compare with."""

import statistics
from collections.abc import Callable
from datetime import datetime
from typing import Any

Row = dict[str, Any]


def _values(rows: list[Row], column: str) -> list[Any]:
    return [row[column] for row in rows if row[column] is not None]


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low))


FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "avg": statistics.fmean,
    "min": min,
    "max": max,
    "sum": sum,
    "median": statistics.median,
    "percentile": lambda values: _percentile(values, 0.9),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}


def aggregate(fn: str, rows: list[Row], column: str, time: str) -> Any:
    if fn == "count":
        return len(rows if column == "*" else _values(rows, column))
    if fn == "count_distinct":
        return len(set(_values(rows, column)))
    values = _values(sorted(rows, key=lambda row: row[time]), column)
    return FUNCTIONS[fn](values) if values else None


def buckets(rows: list[Row], time: str, seconds: int) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        at: datetime = row[time]
        found.setdefault(int(at.timestamp() // seconds * seconds), []).append(row)
    return found


def filled(values: list[float | None], how: str | float) -> list[float | None]:
    return [value if value is not None else _fill(values, i, how) for i, value in enumerate(values)]


def _fill(values: list[float | None], place: int, how: str | float) -> float | None:
    before = [(i, v) for i, v in enumerate(values[:place]) if v is not None]
    after = [(i, v) for i, v in enumerate(values) if i > place and v is not None]
    if how == "null":
        return None
    if how == "previous":
        return before[-1][1] if before else None
    if how != "linear":
        return float(how)
    if not before or not after:
        return None
    (i, low), (j, high) = before[-1], after[0]
    return low + (high - low) * (place - i) / (j - i)
