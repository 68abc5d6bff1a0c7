"""Questions to one dataset as JSON: checked against its columns, compiled to SQL."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from tristore.errors import InvalidQuery
from tristore.events.admin.listing import Instant
from tristore.timestore import downsample
from tristore.timestore.conditions import Condition, compiled_condition
from tristore.timestore.dataset import Dataset
from tristore.timestore.downsample import Asked, Downsample
from tristore.timestore.requests import Limits, Query, Source
from tristore.timestore.schemas import Column
from tristore.timestore.statement import Statement
from tristore.timestore.views import quoted

Name = Annotated[str, Field(min_length=1, max_length=200)]


class Model(BaseModel):
    """Unknown fields are refused: a mistyped filter would silently show everything."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class Order(Model):
    column: Name
    direction: Literal["asc", "desc"] = "asc"


class DatasetQuery(Model):
    """Rows with `from <= time < to`; with `downsample` one row per interval and group."""

    since: Annotated[Instant | None, Field(alias="from")] = None
    until: Annotated[Instant | None, Field(alias="to")] = None
    columns: Annotated[list[Name], Field(min_length=1, max_length=200)] | None = None
    filters: Annotated[list[Condition], Field(max_length=50)] = []
    group_by: Annotated[list[Name], Field(max_length=10)] = []
    downsample: Downsample | None = None
    order: Annotated[list[Order], Field(max_length=10)] | None = None
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.since and self.until and self.since >= self.until:
            raise ValueError("`from` must lie before `to`")
        if self.group_by and self.downsample is None:
            raise ValueError("`groupBy` wants `downsample`: say what to make of each group")
        if self.columns and self.downsample:
            raise ValueError("with `downsample` the columns are the groups and the aggregates")
        return self


def compiled(asked: DatasetQuery, dataset: Dataset, format: str, limits: Limits) -> Query:
    statement = Statement()
    columns = {column.name: column for column in dataset.columns}
    where = [
        compiled_condition(condition, _known(columns, condition.column), statement)
        for condition in asked.filters
    ]
    if asked.downsample is None:
        names = [_known(columns, name).name for name in asked.columns or columns]
        sql = _rows_sql(dataset, names, where)
        shown, usual = set(columns), [dataset.time_column]
    else:
        for name in asked.group_by:
            _known(columns, name)
        wanted = Asked(asked.downsample, asked.group_by, asked.since, asked.until)
        made = downsample.compiled(wanted, dataset, columns, where, statement)
        sql, shown, usual = made.sql, made.names, made.order
    sql += _order_sql(asked.order, shown, usual)
    # One more than is shown, so that the answer can say whether there are more.
    most = min(asked.limit or limits.rows, limits.rows)
    return Query(
        sources=[_source(asked, dataset)],
        sql=f"{sql} LIMIT {most + 1}",
        parameters=statement.values,
        format=format,
        limits=Limits(limits.seconds, most, limits.answer_bytes, limits.memory_mb),
    )


def _rows_sql(dataset: Dataset, names: list[str], where: list[str]) -> str:
    listed = ", ".join(map(quoted, names))
    wanted = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {listed} FROM {quoted(dataset.slug)}{wanted}"


def _order_sql(given: list[Order] | None, shown: set[str], usual: list[str]) -> str:
    if given is None:
        return f" ORDER BY {', '.join(map(quoted, usual))}"
    for order in given:
        if order.column not in shown:
            listed = ", ".join(sorted(shown))
            raise InvalidQuery(f"order: there is no column {order.column!r}; there are {listed}")
    terms = (f"{quoted(order.column)} {order.direction} NULLS LAST" for order in given)
    return f" ORDER BY {', '.join(terms)}" if given else ""


def _source(asked: DatasetQuery, dataset: Dataset) -> Source:
    return Source(
        name=dataset.slug,
        folder=dataset.folder,
        kind=dataset.kind,
        time_column=dataset.time_column,
        after=asked.since,
        before=asked.until,
        columns={column.name: column.type for column in dataset.columns},
    )


def _known(columns: dict[str, Column], name: str) -> Column:
    if name not in columns:
        raise InvalidQuery(f"there is no column {name!r}; the columns are {', '.join(columns)}")
    return columns[name]
