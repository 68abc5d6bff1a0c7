"""The log as it grows, over WebSocket and as server-sent events."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, WebSocket
from starlette.responses import StreamingResponse

from tristore.auth import requires
from tristore.errors import TristoreError
from tristore.events.live.frame import Frame
from tristore.events.type_filter import TypeFilter

router = APIRouter(tags=["live"])

# A proxy between us and the client closes what it believes to be dead.
IDLE_SECONDS = 15.0
Page = tuple[list[Frame], int]
_POSITION = Query(ge=0, lt=2**63, description="Send what comes after this sequence.")
_TYPES = Query(description="`service.entity.action` or `service.*`; repeat for several.")


@router.websocket("/ws", dependencies=[requires("events:read")])
async def live(
    socket: WebSocket,
    type: Annotated[list[str] | None, _TYPES] = None,
    since: Annotated[int | None, _POSITION] = None,
) -> None:
    """The log as it grows: `type=filestore.*` filters, `since=<sequence>` resumes."""
    await socket.app.state.platform.live.serve(socket, TypeFilter(type or []), since)


@router.get("/v1/events/stream", dependencies=[requires("events:read")])
async def stream(
    request: Request,
    type: Annotated[list[str] | None, _TYPES] = None,
    since: Annotated[int | None, _POSITION] = None,
    last_event_id: Annotated[int | None, Header(ge=0, lt=2**63)] = None,
) -> StreamingResponse:
    """The log as it grows, as server-sent events; a client that reconnects sends
    `Last-Event-ID` and misses nothing."""
    start = since if last_event_id is None else last_event_id
    pages = request.app.state.platform.live.stream(
        request.state.principal, TypeFilter(type or []), start, IDLE_SECONDS
    )
    first = await anext(pages)  # refusals come here, while there is still a status to answer with
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_lines(first, pages), media_type="text/event-stream", headers=headers)


async def _lines(page: Page, pages: AsyncGenerator[Page]) -> AsyncGenerator[bytes]:
    async with aclosing(pages):
        while True:
            frames, position = page
            if not frames or frames[-1].sequence < position:
                frames = [*frames, Frame.position(position)]
            yield b"".join([frame.for_sse() for frame in frames])
            try:
                page = await anext(pages)
            except TristoreError:
                return  # the client comes back with its position; the answer then has a status
