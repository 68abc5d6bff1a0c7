"""One row per interval of time and group: aggregates, and what stands in empty intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tristore.errors import InvalidQuery, TooBroad
from tristore.timestore.aggregates import (
    Aggregate,
    aggregate_sql,
    called,
    empty_is_zero,
    gives_number,
)
from tristore.timestore.dataset import Dataset
from tristore.timestore.filling import MOST_INTERVALS, TOO_MANY, filled_sql
from tristore.timestore.schemas import Column
from tristore.timestore.statement import Statement
from tristore.timestore.views import quoted

BUCKET = "bucket"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
# Weeks begin on Mondays; 1970 did on a Thursday.
_MONDAY = 4 * 86_400 * 10**6
# Farther than the year 9999 is from year 1, in microseconds.
_FUTURE = 2**61


class Downsample(BaseModel):
    """`interval`: a number and s, m, h, d or w. `fill`: what a group shows in an interval without
    rows: no row, null, the value before, one on the line to the next, or a number."""

    model_config = ConfigDict(extra="forbid")

    interval: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}[smhdw]$")]
    aggregates: Annotated[list[Aggregate], Field(min_length=1, max_length=50)]
    fill: (
        Literal["none", "null", "previous", "linear"] | Annotated[float, Field(allow_inf_nan=False)]
    ) = "none"

    @property
    def width(self) -> int:
        """In microseconds."""
        return int(self.interval[:-1]) * _SECONDS[self.interval[-1]] * 10**6

    @property
    def offset(self) -> int:
        return _MONDAY if self.interval[-1] == "w" else 0


@dataclass(frozen=True, slots=True)
class Asked:
    """How to sum up, for which groups, and the time that was asked for."""

    how: Downsample
    groups: list[str]
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Compiled:
    sql: str
    names: set[str]
    order: list[str]


def compiled(
    asked: Asked,
    dataset: Dataset,
    columns: Mapping[str, Column],
    where: list[str],
    statement: Statement,
) -> Compiled:
    given = asked.how
    names = [called(aggregate) for aggregate in given.aggregates]
    _refuse_twice([BUCKET, *asked.groups, *names])
    made = [
        f"{aggregate_sql(aggregate, columns, dataset.time_column, statement)} AS {quoted(name)}"
        for aggregate, name in zip(given.aggregates, names, strict=True)
    ]
    groups = [quoted(name) for name in asked.groups]
    moved = _moved(given)
    interval = f"(epoch_us({quoted(dataset.time_column)}) + {moved}) // {given.width} AS _n"
    wanted = f" WHERE {' AND '.join(where)}" if where else ""
    rows = f"SELECT {', '.join([interval, *groups, *made])} FROM {quoted(dataset.slug)}{wanted}"
    shown = ", ".join([*groups, *map(quoted, names)])
    # The number of an interval becomes its time once a group, not once a row.
    bucket = f"_n * {given.width} - {moved} AS _b"
    rows = f"SELECT {bucket}, {shown} FROM ({rows} GROUP BY ALL)"
    order = [BUCKET, *asked.groups]
    if given.fill == "none":
        sql = f"SELECT make_timestamptz(_b) AS {BUCKET}, {shown} FROM ({rows})"
        return Compiled(sql, {*order, *names}, order)
    for aggregate in given.aggregates if given.fill not in ("null", "previous") else ():
        if not gives_number(aggregate, columns):
            raise InvalidQuery(
                f"downsample: {given.fill} fills only numbers, not {called(aggregate)!r}"
            )
    zero = {name for a, name in zip(given.aggregates, names, strict=True) if empty_is_zero(a)}
    grid = _Grid(*_span(asked), given.width)
    filled = filled_sql(grid_sql(grid), asked.groups, names, given.fill, zero)
    sql = f"WITH _rows AS ({rows}), {filled}"
    return Compiled(sql, {*order, *names}, order)


@dataclass(frozen=True, slots=True)
class _Grid:
    """From the bucket that starts at `low` to the one at `high`; None: where the rows do."""

    low: int | None
    high: int | None
    width: int


def grid_sql(grid: _Grid) -> str:
    low = "min(_b)" if grid.low is None else str(grid.low)
    high = "max(_b)" if grid.high is None else str(grid.high)
    ends = f"SELECT {low} AS low, {high} AS high, count(*) FROM _rows"
    # Where the rows decide how many there are, only DuckDB can refuse.
    many = f"(high - low) // {grid.width} >= {MOST_INTERVALS}"
    checked = f"CASE WHEN {many} THEN error('{TOO_MANY}') ELSE high END"
    return f"SELECT unnest(generate_series(low, {checked}, {grid.width})) AS _b FROM ({ends})"


def _span(asked: Asked) -> tuple[int | None, int | None]:
    given = asked.how
    low = None if asked.since is None else _floor(_microseconds(asked.since), given)
    high = None if asked.until is None else _floor(_microseconds(asked.until) - 1, given)
    if low is not None and high is not None and (high - low) // given.width >= MOST_INTERVALS:
        raise TooBroad(TOO_MANY)
    return low, high


def _floor(value: int, given: Downsample) -> int:
    return value - (value - given.offset) % given.width


def _moved(given: Downsample) -> int:
    """Moves times into the future by whole intervals, since SQL divides toward zero."""
    return _FUTURE // given.width * given.width - given.offset


def _microseconds(value: datetime) -> int:
    since = value.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds


def _refuse_twice(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InvalidQuery(f"downsample: two columns would be called {name!r}; use `as`")
        seen.add(name.lower())
