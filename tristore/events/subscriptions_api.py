"""Subscriptions over HTTP: a named reader's next events, and the word that they are handled."""

import asyncio
from contextlib import aclosing
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from tristore.auth import requires
from tristore.db.pool import Pool
from tristore.errors import Forbidden, InvalidQuery, Unavailable
from tristore.events import cloudevents, cursors, strictjson
from tristore.events.api import read_body
from tristore.events.cursors import From, Page
from tristore.events.live.audience import Reader
from tristore.events.live.tail import Tail
from tristore.events.type_filter import TypeFilter

router = APIRouter(prefix="/v1/subscriptions/{name}", dependencies=[requires("events:read")])

MAX_WAIT_SECONDS = 20
_MAX_BODY_BYTES = 1024


class Ack(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    sequence: Annotated[int, Field(ge=0, lt=2**63)]


_ACK_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": Ack.model_json_schema()}},
    }
}


@router.get("/next")
async def next_events(
    request: Request,
    name: str,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    types: Annotated[list[str] | None, Query()] = None,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] = 0,
    from_: Annotated[From, Query(alias="from")] = "beginning",
) -> Response:
    """What comes after the position of this reader; the same again until it is acknowledged.

    `sequence` is what to acknowledge once the items are handled. With `wait` an empty answer
    comes only after so many seconds. A name that is new begins where `from` says.
    """
    _check_access(name)
    platform = request.app.state.platform
    wanted = TypeFilter([part for given in types or [] for part in given.split(",") if part])
    page = await _first(platform.pool, name, wanted, from_, limit)
    if not page.events and wait:
        await _sleep(platform.tail, wanted, page.through, wait)
        page = await _first(platform.pool, name, wanted, from_, limit)
    return _answer(request, page)


@router.post("/ack", openapi_extra=_ACK_BODY)
async def acknowledge(request: Request, name: str) -> dict[str, int]:
    """Everything up to `sequence` is handled. The position moves forward and never back; the
    answer says where it stands."""
    _check_access(name)
    ack = _ack(await read_body(request, _MAX_BODY_BYTES))
    async with request.app.state.platform.pool.connection() as conn:
        return {"sequence": await cursors.advance(conn, name, ack.sequence)}


@router.delete("", status_code=204)
async def forget(request: Request, name: str) -> Response:
    """Drops the position; the name begins anew, and retention no longer waits for it."""
    _check_access(name)
    async with request.app.state.platform.pool.connection() as conn:
        await cursors.forget(conn, name)
    return Response(status_code=204)


def _check_access(name: str) -> None:
    if cursors.check_name(name).startswith(cursors.RESERVED):
        raise Forbidden(f"names that begin with {cursors.RESERVED} belong to the platform")


async def _first(pool: Pool, name: str, wanted: TypeFilter, from_: From, limit: int) -> Page:
    """The next page that holds something, or the end of the log. Where nothing was wanted the
    position moves on by itself, so that a rare type is not searched for again and again."""
    async with pool.connection() as conn:
        while True:
            cursor = await cursors.start(conn, name, wanted.patterns, from_)
            page = await cursors.read(conn, name, cursor, limit)
            if page.events or page.through == cursor.sequence:
                return page
            await cursors.advance(conn, name, page.through)


async def _sleep(tail: Tail, wanted: TypeFilter, position: int, seconds: float) -> None:
    """Until something wanted comes after the position, or time is up."""
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(tail.pages(Reader(wanted, position))) as pages,
        ):
            async for frames, _ in pages:
                if frames:
                    return
    except TimeoutError:
        pass
    except asyncio.CancelledError:
        # The server stops and waits for nobody: a reader is told so instead of a bare 500.
        raise Unavailable("the platform is stopping; ask again") from None


def _ack(body: bytes) -> Ack:
    try:
        return Ack.model_validate(strictjson.loads(body))
    except (strictjson.StrictJsonError, ValidationError):
        raise InvalidQuery('send {"sequence": n}, with the sequence that `next` gave') from None


def _answer(request: Request, page: Page) -> Response:
    if cloudevents.BATCH in request.headers.get("accept", ""):
        made = orjson.dumps([cloudevents.to_cloudevent(event) for event in page.events])
        headers = {"X-Sequence": str(page.through)}
        return Response(made, headers=headers, media_type=cloudevents.BATCH)
    items = [event.to_json() for event in page.events]
    body = orjson.dumps({"items": items, "sequence": page.through})
    return Response(body, media_type="application/json")
