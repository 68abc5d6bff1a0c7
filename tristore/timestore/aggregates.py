"""What a downsampled column is made of: a function over a column."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tristore.errors import InvalidQuery
from tristore.timestore.schemas import Column
from tristore.timestore.statement import Statement
from tristore.timestore.views import quoted

Function = Literal[
    "avg",
    "min",
    "max",
    "sum",
    "count",
    "count_distinct",
    "median",
    "percentile",
    "first",
    "last",
]
_NUMBERS = ("double", "long", "integer")
_OF_NUMBERS = ("avg", "sum", "median", "percentile")
ALL = "*"


class Aggregate(BaseModel):
    """`column` may be `*` for count; `p` (0 to 1) belongs to percentile."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    fn: Function
    column: Annotated[str, Field(min_length=1, max_length=200)] = ALL
    p: Annotated[float, Field(ge=0, le=1)] | None = None
    name: Annotated[str | None, Field(alias="as", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,127}$")] = None


def called(aggregate: Aggregate) -> str:
    if aggregate.name is not None:
        return aggregate.name
    if aggregate.column == ALL:
        return aggregate.fn
    function = aggregate.fn if aggregate.p is None else f"p{aggregate.p * 100:g}"
    return f"{function}_{aggregate.column}".replace(".", "_")


def empty_is_zero(aggregate: Aggregate) -> bool:
    """Where there is no row, there are none: the one thing that is known of it."""
    return aggregate.fn in ("count", "count_distinct")


def gives_number(aggregate: Aggregate, columns: Mapping[str, Column]) -> bool:
    return empty_is_zero(aggregate) or columns[aggregate.column].type in _NUMBERS


def aggregate_sql(
    aggregate: Aggregate, columns: Mapping[str, Column], time_column: str, statement: Statement
) -> str:
    if (aggregate.p is None) == (aggregate.fn == "percentile"):
        raise InvalidQuery("downsample: percentile wants `p` from 0 to 1, the others none")
    if aggregate.column == ALL:
        if aggregate.fn != "count":
            raise InvalidQuery(f"downsample: {aggregate.fn} wants a column")
        return "count(*)"
    column = columns.get(aggregate.column)
    if column is None:
        listed = ", ".join(columns)
        raise InvalidQuery(
            f"downsample: there is no column {aggregate.column!r}; the columns are {listed}"
        )
    if aggregate.fn in _OF_NUMBERS and column.type not in _NUMBERS:
        raise InvalidQuery(f"downsample: {aggregate.fn} wants a column of numbers")
    name, time = quoted(column.name), quoted(time_column)
    made = {
        "count_distinct": f"count(DISTINCT {name})",
        "first": f"arg_min({name}, {time})",
        "last": f"arg_max({name}, {time})",
    }
    if aggregate.fn == "percentile":
        return f"quantile_cont({name}, {statement.bind(aggregate.p)}::DOUBLE)"
    return made.get(aggregate.fn, f"{aggregate.fn}({name})")
