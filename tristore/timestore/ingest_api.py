"""Ingest over HTTP: rows in, and what became of them."""

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import Forbidden, NotFound, StagingLost
from tristore.timestore import access
from tristore.timestore.datasets import Datasets
from tristore.timestore.datasets_api import PREFIX, idempotency_key
from tristore.timestore.formats import MEDIA, format_of
from tristore.timestore.ingest import Batch
from tristore.timestore.ingesting import Asked, Ingesting
from tristore.tokens import Principal

_LONGEST_WAIT = 300.0
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {"rows": {"type": "array", "items": {"type": "object"}}},
                    "required": ["rows"],
                    "additionalProperties": False,
                }
            },
            **{
                media: {"schema": {"type": "string", "format": "binary"}}
                for media in MEDIA
                if media != "application/json"
            },
        },
    }
}

router = APIRouter(prefix=PREFIX, tags=["timestore"])


@router.post(
    "/datasets/{slug}/ingest",
    dependencies=[requires("timestore:write", "timestore:admin")],
    status_code=202,
    openapi_extra=_BODY,
)
async def ingest(
    request: Request,
    slug: str,
    wait: Annotated[Literal["staged", "committed"], Query()] = "staged",
    timeout_seconds: Annotated[
        float, Query(alias="timeoutSeconds", ge=0, le=_LONGEST_WAIT, allow_inf_nan=False)
    ] = 30,
    evolve: bool = True,
) -> Response:
    """Takes rows as JSON, NDJSON, CSV, Parquet or Arrow: all of them, or none with every reason.
    202: they are durable, and queries show them. `wait=committed` answers 200 once they are in
    the table. New columns are taken in unless `evolve=false`. Takes `Idempotency-Key`."""
    asked = await _asked(request, slug, evolve)
    ingesting = _ingesting(request)
    taken = await ingesting.take(asked, request.stream())
    batch = taken.batch
    if wait == "committed" and batch.state == "staged":
        batch = await ingesting.committed(batch, timeout_seconds)
    if batch.state == "failed":
        raise StagingLost(f"the rows did not come into the table: {batch.error}; send them again")
    answer = _json(batch, 200 if batch.state == "committed" else 202)
    answer.headers["Location"] = f"{PREFIX}/ingests/{batch.id}"
    if taken.replayed:
        answer.headers["Idempotency-Replayed"] = "true"
    return answer


@router.get(
    "/ingests/{ingest_id}",
    dependencies=[requires("timestore:read", "timestore:write", "timestore:admin")],
)
async def status(request: Request, ingest_id: Annotated[int, Path(ge=1, lt=2**63)]) -> Response:
    """What became of an ingest: staged, committed (with the table's version) or failed."""
    batch = await _ingesting(request).find(ingest_id)
    if batch is None or not await _visible(request, batch):
        raise NotFound("there is no such ingest, or this token may not see it")
    return _json(batch)


async def _asked(request: Request, slug: str, evolve: bool) -> Asked:
    principal: Principal = request.state.principal
    found = await Datasets(request.app.state.platform.pool).find(slug)
    dataset = access.writable(principal, found)
    if dataset.kind == "log":
        raise Forbidden(f"{slug} is fed by the log; ingest into a dataset of your own")
    return Asked(
        dataset=dataset,
        format=format_of(request.headers.get("content-type")),
        evolve=evolve,
        token_id=principal.id,
        principal=principal.name,
        key=idempotency_key(request),
        correlation_id=request.state.correlation_id,
    )


async def _visible(request: Request, batch: Batch) -> bool:
    principal: Principal = request.state.principal
    dataset = await Datasets(request.app.state.platform.pool).find(batch.dataset)
    if dataset is None or not access.may_see(principal, dataset.slug):
        return False
    return bool({dataset.read_scope, dataset.write_scope} & set(principal.scopes))


def _ingesting(request: Request) -> Ingesting:
    found: Ingesting = request.app.state.platform.ingesting
    return found


def _json(batch: Batch, status: int = 200) -> Response:
    return Response(orjson.dumps(batch.to_json()), status, media_type="application/json")
