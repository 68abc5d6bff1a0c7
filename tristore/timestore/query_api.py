"""Queries over HTTP: SQL over every dataset a token may read, and questions to one dataset."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tristore.auth import requires
from tristore.config import TimestoreSettings
from tristore.timestore import access, dataset_query
from tristore.timestore.dataset import Dataset
from tristore.timestore.dataset_query import DatasetQuery
from tristore.timestore.datasets import Datasets
from tristore.timestore.encodings import chosen
from tristore.timestore.requests import Answer, Limits, Query, Source
from tristore.tokens import Principal

router = APIRouter(prefix="/timestore/v1", tags=["timestore"])

_READING = [requires("timestore:read", "timestore:admin")]
# What a JSON answer says beside its rows, told by headers where a format has no place for it.
_HEADERS = {
    "throughSequence": "X-Through-Sequence",
    "freshnessMs": "X-Freshness-Ms",
    "tailTruncated": "X-Tail-Truncated",
    "truncated": "X-Truncated",
}
Slug = Annotated[str, Path(pattern=r"^[a-z][a-z0-9_]{0,62}$")]


class SqlRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, max_length=100_000)


@router.post("/sql", dependencies=_READING)
async def sql(request: Request, body: SqlRequest) -> Response:
    """Run one SELECT over the datasets the token may read; the answer as JSON, NDJSON, CSV, Arrow
    IPC or Parquet, by `Accept`."""
    format = accepted(request)
    principal: Principal = request.state.principal
    platform = request.app.state.platform
    own = access.own_datasets(principal)
    found = await Datasets(platform.pool).list(only=own, scopes=principal.scopes)
    query = Query(
        sources=[source(dataset) for dataset in found],
        sql=body.sql,
        format=format,
        limits=limits(platform.settings.timestore, format),
        foreign=True,
    )
    return answered(await platform.workers.run(query))


@router.post("/datasets/{slug}/query", dependencies=_READING)
async def query(request: Request, slug: Slug, body: DatasetQuery) -> Response:
    """Ask one dataset: a time range, columns, filters, groups, one row per interval."""
    format = accepted(request)
    platform = request.app.state.platform
    found = await Datasets(platform.pool).find(slug)
    dataset = access.readable(request.state.principal, found)
    most = limits(platform.settings.timestore, format)
    asked = dataset_query.compiled(body, dataset, format, most)
    return answered(await platform.workers.run(asked))


def source(dataset: Dataset) -> Source:
    return Source(
        name=dataset.slug,
        folder=dataset.folder,
        kind=dataset.kind,
        time_column=dataset.time_column,
        columns={column.name: column.type for column in dataset.columns},
    )


def accepted(request: Request) -> str:
    return chosen(", ".join(request.headers.getlist("accept")))


def limits(settings: TimestoreSettings, format: str) -> Limits:
    """People read JSON in pages; the other formats carry data to other programs."""
    plain = format == "json"
    return Limits(
        seconds=settings.query_seconds,
        rows=settings.query_rows if plain else settings.query_bulk_rows,
        answer_bytes=settings.query_bytes // 8 if plain else settings.query_bytes,
        memory_mb=settings.query_memory_mb,
    )


def answered(answer: Answer) -> Response:
    told = {_HEADERS[name]: _text(answer.meta.get(name)) for name in _HEADERS}
    # A table saved by a browser is a file, and never a page of ours.
    safe = {"Content-Disposition": "attachment"} if answer.media_type == "text/csv" else {}
    return Response(answer.body, media_type=answer.media_type, headers={**told, **safe})


def _text(value: object) -> str:
    return "" if value is None else str(value).lower()
