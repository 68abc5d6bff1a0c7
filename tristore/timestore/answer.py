"""Rows of a query as JSON values, cut off at a number of rows and of bytes."""

import base64
import json
import math
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID


def collect(rows: Iterable[Any], max_rows: int, max_bytes: int) -> tuple[list[Any], bool]:
    """The rows that fit, and whether some were left out."""
    kept: list[Any] = []
    size = 0
    for row in rows:
        values = [as_json(value) for value in row]
        size += len(json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        if len(kept) == max_rows or size > max_bytes:
            return kept, True
        kept.append(values)
    return kept, False


def as_json(value: Any) -> Any:
    """JSON has neither dates, bytes, exact decimals nor NaN: those become strings."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    for kind, convert in _CONVERT.items():
        if isinstance(value, kind):
            return convert(value)
    return str(value)


def _float(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def _datetime(value: datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


# datetime before date: every datetime is a date.
_CONVERT: dict[type | tuple[type, ...], Callable[[Any], Any]] = {
    float: _float,
    datetime: _datetime,
    (date, time): lambda value: value.isoformat(),
    (Decimal, UUID, timedelta): str,
    (bytes, bytearray, memoryview): lambda value: base64.b64encode(value).decode("ascii"),
    (list, tuple): lambda value: [as_json(item) for item in value],
    dict: lambda value: {str(key): as_json(item) for key, item in value.items()},
}
