"""Filters of a question to a dataset: column, operator, value."""

from datetime import date
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, TypeAdapter, ValidationError

from tristore.errors import InvalidQuery
from tristore.timestore.schemas import Column
from tristore.timestore.statement import Statement
from tristore.timestore.views import quoted

Operator = Literal["eq", "neq", "lt", "lte", "gt", "gte", "in", "between", "prefix", "is_null"]
_COMPARED = {"eq": "=", "neq": "IS DISTINCT FROM", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_MOST_VALUES = 1000
_MOMENT: TypeAdapter[Any] = TypeAdapter(AwareDatetime)
_DATE: TypeAdapter[Any] = TypeAdapter(date)
_INT64 = 2**63


class Condition(BaseModel):
    """`in` takes a list, `between` a list of two (both ends count), `is_null` true or false."""

    model_config = ConfigDict(extra="forbid")

    column: str
    op: Operator
    value: Any = None


def compiled_condition(condition: Condition, column: Column, statement: Statement) -> str:
    name, value = quoted(column.name), condition.value
    if condition.op == "is_null":
        if value not in (None, True, False):
            raise _wrong(condition, "true or false")
        return f"{name} IS {'NOT ' if value is False else ''}NULL"
    if condition.op == "prefix":
        if column.type != "string" or not isinstance(value, str):
            raise _wrong(condition, "text, on a column of text")
        return f"starts_with({name}, {statement.bind(value)})"
    if condition.op in ("in", "between"):
        bound = [_bound(condition, column, item, statement) for item in _list(condition)]
        listed = " AND ".join(bound) if condition.op == "between" else f"({', '.join(bound)})"
        return f"{name} {condition.op.upper()} {listed}"
    return f"{name} {_COMPARED[condition.op]} {_bound(condition, column, value, statement)}"


def _list(condition: Condition) -> list[Any]:
    value = condition.value
    if condition.op == "between":
        if not isinstance(value, list) or len(value) != 2:
            raise _wrong(condition, "a list of two values")
    elif not isinstance(value, list) or not 0 < len(value) <= _MOST_VALUES:
        raise _wrong(condition, f"a list of 1 to {_MOST_VALUES} values")
    return list(value)


def _bound(condition: Condition, column: Column, value: Any, statement: Statement) -> str:
    kinds = {
        "string": _text,
        "double": _number,
        "long": _number,
        "integer": _number,
        "boolean": _truth,
        "timestamp": _moment,
        "date": _day,
    }
    if column.type not in kinds:
        raise InvalidQuery(f"filters: the column {column.name!r} cannot be compared")
    return kinds[column.type](condition, value, statement)


def _text(condition: Condition, value: Any, statement: Statement) -> str:
    if not isinstance(value, str):
        raise _wrong(condition, "text")
    return f"{statement.bind(value)}::VARCHAR"


def _number(condition: Condition, value: Any, statement: Statement) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(condition, "a number")
    if isinstance(value, int):
        if not -_INT64 <= value < _INT64:
            raise _wrong(condition, "a number of at most 64 bits")
        return f"{statement.bind(value)}::BIGINT"
    return f"{statement.bind(value)}::DOUBLE"


def _truth(condition: Condition, value: Any, statement: Statement) -> str:
    if not isinstance(value, bool):
        raise _wrong(condition, "true or false")
    return f"{statement.bind(value)}::BOOLEAN"


def _moment(condition: Condition, value: Any, statement: Statement) -> str:
    found = _parsed(_MOMENT, value)
    if found is None:
        raise _wrong(condition, "a time with a zone, such as 2026-11-15T10:00:00Z")
    return f"{statement.bind(found.isoformat())}::TIMESTAMPTZ"


def _day(condition: Condition, value: Any, statement: Statement) -> str:
    found = _parsed(_DATE, value)
    if found is None:
        raise _wrong(condition, "a date, such as 2026-11-15")
    return f"{statement.bind(found.isoformat())}::DATE"


def _parsed(kind: TypeAdapter[Any], value: Any) -> Any:
    """What a text says; None where it does not say such a thing."""
    try:
        return kind.validate_python(value) if isinstance(value, str) else None
    except ValidationError:
        return None


def _wrong(condition: Condition, wanted: str) -> InvalidQuery:
    return InvalidQuery(f"filters: {condition.op} on {condition.column!r} wants {wanted}")
