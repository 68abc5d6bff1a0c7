"""Growth and churn of storage over HTTP: as JSON, CSV, Arrow IPC, or a chart."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from tristore.auth import requires
from tristore.db.queries import load
from tristore.errors import NotFound, TooBroad
from tristore.events.admin.listing import Instant
from tristore.timestore import (
    access,
    charts,
    churn,
    encodings,
    growth,
    headings,
    requests,
    window,
)
from tristore.timestore.datasets import Datasets
from tristore.timestore.growth import Folder
from tristore.timestore.query_api import answered
from tristore.timestore.tables import ACTIVITY, GROWTH, Tables
from tristore.tokens import Principal

router = APIRouter(prefix="/timestore/v1/storage", tags=["timestore"])

_sql = load("tristore.timestore", "storage.sql")
_READING = [requires("timestore:read")]
_SVG = "image/svg+xml"
_FORMATS = {name: encodings.ROWS[name] for name in ("json", "csv", "arrow")} | {"svg": _SVG}
# A chart is opened as a page of our own origin: whatever a folder is called, nothing in it runs.
_SVG_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}


def _folder(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain NUL")
    return text.strip("/")


MountName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Prefix = Annotated[str, Field(max_length=4096), AfterValidator(_folder)]
Format = Literal["json", "csv", "arrow", "svg"]
_Rows = list[dict[str, Any]]


class StorageQuery(BaseModel):
    """`prefix` is a folder, the whole mount unless it is said. `format` goes before `Accept`."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    mount: MountName | None = None
    prefix: Prefix = ""
    since: Annotated[Instant | None, Field(alias="from")] = None
    until: Annotated[Instant | None, Field(alias="to")] = None
    format: Format | None = None


class GrowthQuery(StorageQuery):
    """`bucket`: a number and s, m, h, d or w; by the length of the time unless it is said."""

    bucket: Annotated[str, Field(pattern=window.BUCKET)] | None = None


class ChurnQuery(StorageQuery):
    """`depth`: how many levels below `prefix` the folders lie; `by`: what counts as most."""

    depth: int = Field(1, ge=1, le=32)
    by: churn.By = "changes"
    limit: int = Field(20, ge=1, le=1000)


@router.get("/growth", dependencies=_READING)
async def grown(request: Request, query: Annotated[GrowthQuery, Query()]) -> Response:
    """What came and went in each bucket of time, and what lay there at its end; the last seven
    days unless it is said. Without `mount`: all mounts the token may see, added up."""
    format, folder = _format(request, query), _wanted(request, query)
    asked = window.of(query.since, query.until, query.bucket, datetime.now(UTC))
    tables = await _tables(request)
    await _refuse_unknown(request, tables, query.mount)
    question = growth.query(tables, folder, asked, _rows_format(format))

    def chart(points: _Rows) -> str:
        return charts.growth(points, window.moment(asked.end), headings.growth(folder, asked))

    return _told(await _run(request, question), format, "points", chart)


@router.get("/churn", dependencies=_READING)
async def churned(request: Request, query: Annotated[ChurnQuery, Query()]) -> Response:
    """The folders that changed most, by changes or by bytes; in the last seven days unless it is
    said. Files outside of folders that deep are in none."""
    format, folder = _format(request, query), _wanted(request, query)
    begin, end = _whole_hours(query)
    asked = churn.Asked(begin, end, query.depth, query.by, query.limit)
    tables = await _tables(request)
    await _refuse_unknown(request, tables, query.mount)
    question = churn.query(tables, folder, asked, _rows_format(format))

    def chart(items: _Rows) -> str:
        return charts.churn(items, query.by, headings.churn(folder, asked))

    return _told(await _run(request, question), format, "items", chart)


def _format(request: Request, query: StorageQuery) -> str:
    accept = ", ".join(request.headers.getlist("accept"))
    return query.format or encodings.chosen(accept, _FORMATS)


def _rows_format(format: str) -> str:
    """A chart is drawn here, of the rows that a JSON answer has."""
    return "json" if format == "svg" else format


def _wanted(request: Request, query: StorageQuery) -> Folder:
    """The mounts a token is limited to are all there are for it."""
    own = request.state.principal.mounts
    if query.mount is None:
        return Folder(None, own, query.prefix)
    if own is not None and query.mount not in own:
        raise _no_mount()
    return Folder(query.mount, [query.mount], query.prefix)


async def _tables(request: Request) -> Tables:
    """A token limited to datasets must name the growth table; one limited to mounts need not,
    since it sees only the sums of those."""
    principal: Principal = request.state.principal
    platform = request.app.state.platform
    if principal.datasets is not None and GROWTH not in principal.datasets:
        raise access.absent()
    only, scopes = [ACTIVITY, GROWTH], principal.scopes
    found = await Datasets(platform.pool).list(only=only, scopes=scopes)
    by_slug = {dataset.slug: dataset for dataset in found}
    if len(by_slug) < len(only):
        raise access.absent()
    depth = platform.settings.timestore.growth_depth
    return Tables(by_slug[ACTIVITY], by_slug[GROWTH], depth)


async def _refuse_unknown(request: Request, tables: Tables, mount: str | None) -> None:
    platform = request.app.state.platform
    if mount is None:
        return
    async with platform.pool.connection() as conn:
        found = await (await conn.execute(_sql.mount_exists, {"name": mount})).fetchone()
    if not found[0] and not _objects(await _run(request, growth.told(tables, mount))):
        raise _no_mount()


async def _run(request: Request, question: requests.Query) -> requests.Answer:
    platform = request.app.state.platform
    given = platform.settings.timestore
    limits = requests.Limits(
        given.query_seconds, window.MOST_BUCKETS, given.query_bytes, given.query_memory_mb
    )
    answer: requests.Answer = await platform.workers.run(replace(question, limits=limits))
    if answer.meta.get("truncated"):
        raise TooBroad("the answer is too large; ask for a wider bucket or for fewer folders")
    return answer


def _no_mount() -> NotFound:
    return NotFound("there is no such mount, or this token may not see it")


def _whole_hours(query: ChurnQuery) -> tuple[float, float]:
    """What was said is taken as it is; the last seven days begin and end with an hour."""
    begin, end = window.span(query.since, query.until, datetime.now(UTC))
    if query.since is None:
        begin -= begin % window.HOUR
    return begin, end if query.until else end - end % window.HOUR + window.HOUR


def _objects(answer: requests.Answer) -> _Rows:
    told = orjson.loads(answer.body)
    names = [column["name"] for column in told["columns"]]
    return [dict(zip(names, row, strict=True)) for row in told["rows"]]


def _origin(answer: requests.Answer) -> dict[str, Any]:
    names = ("throughSequence", "freshnessMs", "tailTruncated", "tableVersion")
    return {name: answer.meta.get(name) for name in names}


def _told(
    answer: requests.Answer, format: str, name: str, chart: Callable[[_Rows], str]
) -> Response:
    """CSV and Arrow are passed on as the worker wrote them; `name` is what JSON calls the rows."""
    if format in ("csv", "arrow"):
        return answered(answer)
    rows = _objects(answer)
    if format == "json":
        body = orjson.dumps({name: rows, **_origin(answer)})
        return Response(body, media_type="application/json")
    return Response(chart(rows), media_type=_SVG, headers=_SVG_HEADERS)
