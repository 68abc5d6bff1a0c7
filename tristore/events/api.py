"""The bus over HTTP and WebSocket."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, WebSocket
from starlette.responses import JSONResponse

from tristore.auth import requires
from tristore.db.wakeups import OUTBOX
from tristore.errors import InvalidEvent, InvalidRequest, TooLarge, Violation
from tristore.events import outbox, strictjson
from tristore.events.envelope import Event, new_id, now_text
from tristore.events.live import TypeFilter
from tristore.events.registry import Registry

router = APIRouter()

MAX_BODY_BYTES = 1024 * 1024
MAX_EVENTS = 1000


@router.post("/v1/events", dependencies=[requires("events:publish")], status_code=202)
async def publish(request: Request) -> JSONResponse:
    """Accepts one event or a list; 202 means each is committed and will not be lost."""
    platform = request.app.state.platform
    events = _events(await _body(request), request.state.correlation_id, platform.registry)
    async with platform.pool.connection() as conn:
        async with conn.transaction():
            results = await outbox.offer(conn, events)
        await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
    return JSONResponse({"results": results}, status_code=202)


@router.websocket("/ws", dependencies=[requires("events:read")])
async def live(
    socket: WebSocket,
    type: Annotated[list[str] | None, Query()] = None,
    since: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> None:
    """The log as it grows: `type=filestore.*` filters, `since=<sequence>` resumes."""
    await socket.app.state.platform.live.serve(socket, TypeFilter(type or []), since)


async def _body(request: Request) -> bytes:
    """Counted while it streams; a length that lies does not help."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes")
    return bytes(body)


def _events(body: bytes, correlation_id: str, registry: Registry) -> list[Event]:
    """Every violation of every event, in one answer."""
    try:
        given = strictjson.loads(body)
    except strictjson.StrictJsonError as error:
        raise InvalidEvent("envelope_invalid", [Violation("", str(error))]) from None
    listed = given if isinstance(given, list) else [given]
    if not 1 <= len(listed) <= MAX_EVENTS:
        raise InvalidRequest(f"send 1 to {MAX_EVENTS} events, not {len(listed)}")
    events, violations = [], []
    for index, value in enumerate(listed):
        try:
            defaults = {"id": new_id(), "occurredAt": now_text(), "correlationId": correlation_id}
            events.append(registry.check(Event.parse(value, defaults)))
        except InvalidEvent as refusal:
            prefix = f"/{index}" if isinstance(given, list) else ""
            violations += [Violation(prefix + v.path, v.message) for v in refusal.violations]
    if violations:
        raise InvalidEvent("invalid", violations)
    return events
