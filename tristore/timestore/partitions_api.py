"""Partitions over HTTP: which a dataset has, how large they are, and whether they are closed."""

import re
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import InvalidQuery
from tristore.timestore import access, partitions
from tristore.timestore.datasets import Datasets

router = APIRouter(prefix="/timestore/v1", tags=["timestore"])

_CURSOR = re.compile(r"\d{4}-\d{2}(-\d{2}(T\d{2})?)?", re.ASCII)


@router.get(
    "/datasets/{slug}/partitions",
    dependencies=[requires("timestore:read", "timestore:admin")],
)
async def listed(
    request: Request,
    slug: str,
    state: Literal["open", "closed", "removed"] | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Newest first. A closed one is sorted and complete, unless rows come later than the dataset
    allows for: then it is open again, and its next closing has the next revision."""
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise InvalidQuery("the cursor is none that was given out; start without one")
    pool = request.app.state.platform.pool
    dataset = access.readable(request.state.principal, await Datasets(pool).find(slug))
    states = ("open", "closed") if state is None else (state,)
    found = await partitions.page(pool, dataset.slug, before=cursor, states=states, limit=limit + 1)
    shown = found[:limit]
    more = shown[-1].partition if len(found) > limit else None
    body = {"items": [one.to_json() for one in shown], "nextCursor": more}
    return Response(orjson.dumps(body), media_type="application/json")
