"""Exports over HTTP: asked for here, carried out by the pipeline, followed until they are done."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Path, Query, Request
from pydantic import AwareDatetime, Field, model_validator
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import NotFound
from tristore.events.payloads import ExportFormat
from tristore.timestore import access, exports
from tristore.timestore.datasets import Datasets
from tristore.timestore.datasets_api import PREFIX, Model, idempotency_key
from tristore.timestore.exports import Asked, Wanted
from tristore.tokens import Principal

router = APIRouter(prefix=PREFIX, tags=["timestore"])

_READ = [requires("timestore:read", "timestore:admin")]
_ASK = [requires("timestore:write", "timestore:admin")]
# A name and never a path: files go below the exports' folder, wherever the operator has it.
_TARGET = r"^[a-z0-9][a-z0-9_-]{0,99}$"
ExportId = Annotated[int, Path(ge=1, lt=2**63)]


class NewExport(Model):
    """Rows of `[from, to)` of the time column; without bounds, all of them."""

    format: ExportFormat = "parquet"
    target: Annotated[str, Field(pattern=_TARGET)] | None = None
    start: AwareDatetime | None = Field(None, alias="from")
    end: AwareDatetime | None = Field(None, alias="to")

    @model_validator(mode="after")
    def _in_order(self) -> "NewExport":
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("from must lie before to")
        return self


class ExportsQuery(Model):
    dataset: Annotated[str, Field(max_length=100)] | None = None
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,18}$")] | None = None
    limit: int = Field(100, ge=1, le=1000)


@router.post("/datasets/{slug}/exports", dependencies=_ASK, status_code=202)
async def create(request: Request, slug: str, body: Annotated[NewExport, Body()]) -> Response:
    """Writes the dataset out as files: what it holds when this is answered, and all of that.

    The files are shown all at once when `state` is `completed`. Takes `Idempotency-Key`."""
    principal: Principal = request.state.principal
    pool = request.app.state.platform.pool
    dataset = access.readable(principal, await Datasets(pool).find(slug))
    wanted = Wanted(dataset.slug, body.format, body.target, body.start, body.end)
    asked = Asked(
        principal.name, principal.id, idempotency_key(request), request.state.correlation_id
    )
    export, repeated = await exports.create(pool, wanted, asked)
    headers = {"Location": f"{PREFIX}/exports/{export.id}"}
    if repeated:
        headers["Idempotency-Replayed"] = "true"
    return _json(export.to_json(), 202, headers)


@router.get("/exports", dependencies=_READ)
async def listed(request: Request, query: Annotated[ExportsQuery, Query()]) -> Response:
    """Exports of the datasets this token may read, newest first."""
    principal: Principal = request.state.principal
    async with request.app.state.platform.pool.connection() as conn:
        found = await exports.page(
            conn,
            dataset=query.dataset,
            only=access.own_datasets(principal),
            scopes=principal.scopes,
            before=None if query.cursor is None else int(query.cursor),
            limit=query.limit + 1,
        )
    shown = found[: query.limit]
    more = str(shown[-1].id) if len(found) > query.limit else None
    return _json({"items": [one.to_json() for one in shown], "nextCursor": more})


@router.get("/exports/{export_id}", dependencies=_READ)
async def read(request: Request, export_id: ExportId) -> Response:
    """How far an export has come; `target` is its name below the exports' folder."""
    pool = request.app.state.platform.pool
    async with pool.connection() as conn:
        export = await exports.get(conn, export_id)
    try:
        access.readable(request.state.principal, await Datasets(pool).find(export.dataset))
    except NotFound:
        raise exports.absent() from None
    return _json(export.to_json())


def _json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status, headers, "application/json")
