"""HTTP/1.1 as uvicorn speaks it, with the limits it lacks: time and size of a request's head,
the pace of its body, the pace at which a client reads, and one reading of where a body ends."""

from asyncio import TimerHandle, Transport
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tristore.config import HttpSettings
from tristore.http.one_write import OneWrite

# A client that is refused in the middle of sending must still get to read why.
_LINGER_SECONDS = 2.0
# How much of a body nobody wants is read past, so that a client reads the answer, before a cut.
_WASTE_BYTES = 16 * 1024 * 1024


class Phase(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    REFUSED = auto()


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    status: HTTPStatus
    detail: str

    def as_bytes(self) -> bytes:
        body = orjson.dumps(
            {
                "type": "about:blank",
                "title": self.status.phrase,
                "status": self.status,
                "detail": self.detail,
            }
        )
        head = (
            f"HTTP/1.1 {self.status} {self.status.phrase}\r\n"
            "content-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        return head.encode("ascii") + body


_MALFORMED = Refusal(HTTPStatus.BAD_REQUEST, "that is not HTTP/1.1")
_SLOW_HEAD = Refusal(HTTPStatus.REQUEST_TIMEOUT, "the request's head took too long")
_SLOW_BODY = Refusal(HTTPStatus.REQUEST_TIMEOUT, "the request's body came too slowly")
_BIG_HEAD = Refusal(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request's head is larger than the server takes"
)
_TWO_ENDS = Refusal(
    HTTPStatus.BAD_REQUEST, "send one Content-Length, or Transfer-Encoding: chunked, never both"
)


class LimitedHttp(HttpToolsProtocol):
    limits = HttpSettings()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._phase = Phase.HEAD
        self._received = 0
        self._wasted = 0
        self._refusal = _MALFORMED
        self._deadline: TimerHandle | None = None
        self._unread: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(OneWrite(transport, self.loop))  # type: ignore[arg-type]
        self._enter(Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase is Phase.REFUSED:
            return
        if self._phase is Phase.IDLE:
            self._enter(Phase.HEAD)
        self._received += len(data)
        super().data_received(data)
        if self._phase is Phase.HEAD and self._received > self.limits.max_header_bytes:
            self._refuse(_BIG_HEAD)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._phase is not Phase.HEAD:  # a second request in the same bytes
            self._enter(Phase.HEAD)

    def on_headers_complete(self) -> None:
        self._check_head()
        super().on_headers_complete()
        if self.parser.should_upgrade() and self._should_upgrade():
            self._disarm()
        else:
            self._enter(Phase.BODY)

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.cycle.response_complete:
            self._wasted += len(body)
            if self._wasted > _WASTE_BYTES:
                self.transport.abort()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._enter(Phase.IDLE)

    def handle_websocket_upgrade(self) -> None:
        self.transport = self.transport.own  # type: ignore[attr-defined]
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """The parser gave up: at bytes that are no HTTP, or because a callback here refused."""
        self._refuse(self._refusal)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self._after(self.limits.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _check_head(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        names = [name for name, _ in self.headers]
        lengths, encodings = names.count(b"content-length"), names.count(b"transfer-encoding")
        if size > self.limits.max_header_bytes:
            self._refusal = _BIG_HEAD
        elif lengths + encodings > 1:
            self._refusal = _TWO_ENDS
        else:
            return
        raise self._refusal

    def _enter(self, phase: Phase) -> None:
        self._disarm()
        self._phase = phase
        self._received = 0
        if phase is Phase.HEAD:
            self._deadline = self._after(self.limits.header_seconds, self._head_late)
        elif phase is Phase.BODY:
            self._wasted = 0
            self._deadline = self._after(self.limits.body_seconds, self._check_pace)

    def _head_late(self) -> None:
        # A connection on which nothing was ever sent is closed without a word.
        self._refuse(_SLOW_HEAD) if self._received else self.transport.close()

    def _check_pace(self) -> None:
        """A body must keep coming while we are willing to read it."""
        ours = self.flow.read_paused or self.cycle.waiting_for_100_continue
        if not ours and self._received < self.limits.body_bytes_per_period:
            self._refuse(_SLOW_BODY)
            return
        self._received = 0
        self._deadline = self._after(self.limits.body_seconds, self._check_pace)

    def _refuse(self, refusal: Refusal) -> None:
        self._disarm()
        self._phase = Phase.REFUSED
        if self.transport.is_closing():
            return
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # the application waits for a body that will not come
            cycle.message_event.set()
            if cycle.response_started or self.pipeline:
                self.transport.abort()
                return
        self.transport.write(refusal.as_bytes())
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._deadline = self._after(_LINGER_SECONDS, self.transport.abort)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _after(self, seconds: float, call: Callable[[], None]) -> TimerHandle:
        return self.loop.call_later(seconds, call)


def limited_http(settings: HttpSettings) -> type[LimitedHttp]:
    """uvicorn makes the protocols itself, so the limits travel with the class."""
    return type("LimitedHttp", (LimitedHttp,), {"limits": settings})
