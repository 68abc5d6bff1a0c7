"""Values of an answer as JSON has them: what it lacks becomes a string."""

import base64
import math
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**63
# Types whose values orjson writes as we want them.
_PLAIN = frozenset(
    "BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT VARCHAR DATE "
    "UUID JSON".split()
)


def as_lists(batch: pa.RecordBatch, kinds: Iterable[str]) -> list[list[Any]]:
    """The columns of a batch, each as values that orjson can write; `kinds` in DuckDB's names."""
    return [_column(column, kind) for column, kind in zip(batch.columns, kinds, strict=True)]


def _column(column: pa.Array, kind: str) -> list[Any]:
    if kind in _PLAIN:
        return list(column.to_pylist())
    if kind == "TIMESTAMP WITH TIME ZONE":
        return [_moment(value) for value in column.cast(pa.int64()).to_pylist()]
    if kind in ("DOUBLE", "FLOAT") and pc.all(pc.is_finite(column)).as_py() is not False:
        return list(column.to_pylist())
    if kind == "HUGEINT":
        return [_whole(value) for value in column.to_pylist()]
    return [as_json(value) for value in column.to_pylist()]


def _moment(microseconds: int | None) -> datetime | str | None:
    if microseconds is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return "infinity" if microseconds > 0 else "-infinity"


def _whole(value: Decimal | None) -> int | orjson.Fragment | None:
    if value is None:
        return None
    return int(value) if -_LARGEST <= value < _LARGEST else orjson.Fragment(str(int(value)))


def as_json(value: Any) -> Any:
    """JSON has neither dates, bytes, exact decimals nor NaN."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value < 2 * _LARGEST else orjson.Fragment(str(value))
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
