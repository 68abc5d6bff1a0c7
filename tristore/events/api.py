"""Publishing over HTTP."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse

from tristore.auth import requires
from tristore.db.wakeups import OUTBOX
from tristore.errors import InvalidEvent, InvalidRequest, TooLarge, Violation
from tristore.events import cloudevents, outbox, strictjson
from tristore.events.cloudevents import from_cloudevent
from tristore.events.envelope import Event, new_id, now_text
from tristore.events.registry import schema_watch
from tristore.events.registry.registry import Registry

router = APIRouter()
Shape = Callable[[Any], Any]

MAX_BODY_BYTES = 1024 * 1024
MAX_EVENTS = 1000


@router.post("/v1/events", dependencies=[requires("events:publish")], status_code=202)
async def publish(request: Request) -> JSONResponse:
    """Accepts one event or a list, as envelopes or as CloudEvents; 202 means each is committed
    and will not be lost. With an `Idempotency-Key` a retry is recognised without ids, too."""
    platform = request.app.state.platform
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    given = _given(await read_body(request), kind)
    shape = from_cloudevent if kind in (cloudevents.ONE, cloudevents.BATCH) else _as_it_is
    defaults = _Defaults.of(request)
    try:
        events = _events(given, shape, defaults, platform.registry)
    except InvalidEvent:
        # Another process may have registered the schema a moment ago.
        if not await schema_watch.learned(platform.pool, platform.registry):
            raise
        events = _events(given, shape, defaults, platform.registry)
    async with platform.pool.connection() as conn:
        async with conn.transaction():
            results = await outbox.offer(conn, events)
        await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
    return JSONResponse({"results": results}, status_code=202)


async def read_body(request: Request, most: int = MAX_BODY_BYTES) -> bytes:
    """Counted while it streams; a length that lies does not help."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise TooLarge(f"the body is larger than {most} bytes")
    return bytes(body)


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What events get that come without it."""

    correlation_id: str
    token_id: str
    key: str | None

    @classmethod
    def of(cls, request: Request) -> "_Defaults":
        key = request.headers.get("idempotency-key")
        if key is not None and not (0 < len(key) <= 200 and key.isprintable()):
            raise InvalidRequest("an Idempotency-Key has 1 to 200 printable characters")
        return cls(request.state.correlation_id, request.state.principal.id, key)

    def at(self, index: int) -> dict[str, str]:
        return {
            "id": self._id(index),
            "occurredAt": now_text(),
            "correlationId": self.correlation_id,
        }

    def _id(self, index: int) -> str:
        """By token, key and place: the same request sent again has the same ids."""
        if self.key is None:
            return new_id()
        return str(uuid5(NAMESPACE_URL, f"tristore:{self.token_id}/{index}/{self.key}"))


def _as_it_is(value: Any) -> Any:
    return value


def _given(body: bytes, kind: str) -> Any:
    """One event or a list of them, in whatever shape."""
    try:
        given = strictjson.loads(body, wrapped=1)
    except strictjson.StrictJsonError as error:
        raise InvalidEvent("envelope_invalid", [Violation("", str(error))]) from None
    if kind == cloudevents.ONE and isinstance(given, list):
        raise InvalidRequest(f"{kind} is one event; send a list as {cloudevents.BATCH}")
    if kind == cloudevents.BATCH and not isinstance(given, list):
        raise InvalidRequest(f"{kind} is a list; send one event as {cloudevents.ONE}")
    return given


def _events(given: Any, shape: Shape, defaults: _Defaults, registry: Registry) -> list[Event]:
    """Every violation of every event, in one answer."""
    listed = given if isinstance(given, list) else [given]
    if not 1 <= len(listed) <= MAX_EVENTS:
        raise InvalidRequest(f"send 1 to {MAX_EVENTS} events, not {len(listed)}")
    events, violations = [], []
    for index, value in enumerate(listed):
        try:
            event = Event.parse(shape(value), defaults.at(index))
            # Not stamped with the version: ingress does that, with what is registered by then.
            registry.check(event)
            events.append(event)
        except InvalidEvent as refusal:
            prefix = f"/{index}" if isinstance(given, list) else ""
            violations += [Violation(prefix + v.path, v.message) for v in refusal.violations]
    if violations:
        raise InvalidEvent("invalid", violations)
    return events
