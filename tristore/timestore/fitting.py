"""Values as they were sent made to fit a column, or the rows that do not; runs in intake
processes only."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tristore.errors import Violation
from tristore.timestore.chunks import Chunk, place
from tristore.timestore.schemas import Column

Values: TypeAlias = "list[Any] | pa.Array"

ARROW = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "double": pa.float64(),
    "long": pa.int64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
_HINT = {
    "timestamp": "a time as in 2026-11-15T10:00:00.5Z, to microseconds, of the years 1583 to 9999",
    "date": "a day as in 2026-11-15, of the years 1583 to 9999",
    "long": "a whole number within 64 bits",
    "double": "a number that a double holds exactly",
    "string": "a text",
    "boolean": "true or false",
}
# What Python's values (of JSON) may be for a column; texts are read as times and days.
_PYTHON: dict[str, set[type]] = {
    "timestamp": {str},
    "date": {str},
    "string": {str},
    "double": {int, float},
    "long": {int, float},
    "boolean": {bool},
}
# The same for Arrow's types, by the column type each comes nearest to.
_FROM: dict[str, set[str]] = {
    "timestamp": {"timestamp", "date", "string"},
    "date": {"date", "string"},
    "string": {"string"},
    "double": {"double", "long"},
    "long": {"long", "double"},
    "boolean": {"boolean"},
}
# Earlier days have other numbers in other programs' calendars.
_EARLIEST, _LATEST = date(1583, 1, 1), date(9999, 12, 31)
_ZONE = r"([zZ]|[+-]\d\d(:?\d\d)?)$"
_HAS_ZONE = r"\d\d:\d\d.*" + _ZONE
_SHOWN = 80
_MISFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)


def nearest(kind: pa.DataType) -> str | None:
    """The column type that holds an Arrow type; None if there is none, `null` if any does."""
    if pa.types.is_dictionary(kind):
        return nearest(kind.value_type)
    return next((name for name, test in _NEAREST if test(kind)), None)


def fit(chunk: Chunk, column: Column, most: int) -> pa.Array | list[Violation]:
    """The values of the chunk's column, or up to `most` reasons why they are none."""
    values = chunk.columns.get(column.name)
    if values is None:
        if not column.nullable:
            return [Violation(place(chunk.first, column.name), "the column is required")]
        return pa.nulls(chunk.rows, ARROW[column.type])
    try:
        made = _converted(values, column.type, chunk.text)
    except _MISFIT:
        wrong = _misfits(values, lambda part: _fitting(part, column, chunk.text))
        return [_misfit(chunk, column, n, values[n]) for n in islice(wrong, most)]
    if made.null_count and not column.nullable:
        rows = pc.indices_nonzero(pc.is_null(made))[:most].to_pylist()
        return [_missing(chunk, column, n) for n in rows]
    return made


def _fitting(values: Values, column: Column, text: bool) -> None:
    made = _converted(values, column.type, text)
    if made.null_count and not column.nullable:
        raise ValueError


def _converted(values: Values, kind: str, text: bool) -> pa.Array:
    made = _of_python(values, kind) if isinstance(values, list) else _of_arrow(values, kind, text)
    if kind in ("timestamp", "date"):
        _refuse_far(made)
    return made


def _of_python(values: list[Any], kind: str) -> pa.Array:
    found = set(map(type, values)) - {type(None)}
    if found - _PYTHON[kind]:
        raise TypeError
    if kind == "long" and float in found:
        values = [_whole(value) for value in values]
    if kind in ("timestamp", "date"):
        return _parsed(pa.array(values, pa.string()), kind)
    return pa.array(values, ARROW[kind])


def _whole(value: Any) -> Any:
    if type(value) is not float:
        return value
    if not value.is_integer():
        raise ValueError
    return int(value)


def _of_arrow(values: pa.Array, kind: str, text: bool) -> pa.Array:
    near = nearest(values.type)
    if near == "null":
        return pa.nulls(len(values), ARROW[kind])
    if near is None or (near not in _FROM[kind] and not (text and near == "string")):
        raise TypeError
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if near == "string":
        values = values.cast(pa.string())
        return values if kind == "string" else _parsed(values, kind)
    if near == "date":
        values = values.cast(pa.date32())
    return values.cast(ARROW[kind])


def _parsed(values: pa.Array, kind: str) -> pa.Array:
    if kind == "long":
        values = pc.replace_substring_regex(values, r"^([+-]?\d+)\.0+$", r"\1")
    if kind != "timestamp":
        return values.cast(ARROW[kind])
    zoned = pc.match_substring_regex(values, _HAS_ZONE)
    none = pa.scalar(None, pa.string())
    told = pc.if_else(zoned, values, none).cast(ARROW["timestamp"])
    # A time without a zone is meant in UTC.
    naive = pc.if_else(zoned, none, values).cast(pa.timestamp("us")).cast(ARROW["timestamp"])
    return pc.coalesce(told, naive)


def _refuse_far(values: pa.Array) -> None:
    bounds = pc.min_max(values)
    for bound in (bounds["min"], bounds["max"]):
        if bound.is_valid and not _EARLIEST <= _day(bound) <= _LATEST:
            raise ValueError


def _day(value: pa.Scalar) -> date:
    found = value.as_py()
    return found.astimezone(UTC).date() if isinstance(found, datetime) else found


def _misfits(values: Values, convert: Callable[[Values], object]) -> Iterator[int]:
    """The places that do not convert, found by halving: the libraries name no row."""
    waiting = [(0, len(values))]
    while waiting:
        start, stop = waiting.pop()
        try:
            convert(values[start:stop])
            continue
        except _MISFIT:
            pass
        if stop - start == 1:
            yield start
        else:
            middle = (start + stop) // 2
            waiting += [(middle, stop), (start, middle)]


def _missing(chunk: Chunk, column: Column, row: int) -> Violation:
    return Violation(place(chunk.first + row, column.name), "must not be null")


def _misfit(chunk: Chunk, column: Column, row: int, value: Any) -> Violation:
    if isinstance(value, pa.Scalar):
        # Python's times have no nanoseconds.
        timed = pa.types.is_temporal(value.type)
        value = (value.cast(pa.string()) if timed else value).as_py()
    if value is None:
        return _missing(chunk, column, row)
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return Violation(
        place(chunk.first + row, column.name),
        f"{shown} does not fit {column.type}: it must be {_HINT[column.type]}",
    )


_NEAREST: list[tuple[str, Callable[[pa.DataType], bool]]] = [
    ("null", pa.types.is_null),
    ("boolean", pa.types.is_boolean),
    ("long", pa.types.is_integer),
    ("double", pa.types.is_floating),
    ("string", lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
    ("string", pa.types.is_string_view),
    ("timestamp", pa.types.is_timestamp),
    ("date", pa.types.is_date),
]
