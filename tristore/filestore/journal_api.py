"""The journal over HTTP: every change in order, as a feed to resume from."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from tristore.auth import requires
from tristore.filestore.requests import PREFIX, Asking, Model, NumberText, filestore

router = APIRouter(prefix=f"{PREFIX}/journal", tags=["filestore"])

READING = [requires("filestore:read")]


class FeedQuery(Model):
    """`after` is the id of the last entry the reader has; `cursor` is the same number."""

    after: int = Field(0, ge=0, lt=2**63)
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,18}$")] | None = None
    limit: int = Field(100, ge=1, le=1000)


@router.get("", dependencies=READING)
async def feed(request: Request, asking: Asking, query: Annotated[FeedQuery, Query()]) -> Response:
    """Finished entries in the order of their ids; none appears later before one that was told.
    Keep the id of the last one and come back with `after=<id>`."""
    after = query.after if query.cursor is None else int(query.cursor)
    found = await filestore(request).journal(asking, after, query.limit)
    cursor = str(found[-1].id) if len(found) == query.limit else None
    return _json({"items": [entry.to_json() for entry in found], "nextCursor": cursor})


@router.get("/{journal_id}", dependencies=READING)
async def entry(request: Request, asking: Asking, journal_id: NumberText) -> Response:
    """One entry, also while it is being carried out, with its progress."""
    return _json((await filestore(request).entry(asking, journal_id)).to_json())


def _json(body: object) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
