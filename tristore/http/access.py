"""One log line and one count per request: by route, status, time and principal, and nothing of
what was said."""

import logging
import time

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tristore.metrics import Counter, Histogram
from tristore.problem import as_tristore_error, problem

_log = logging.getLogger("tristore.access")
UNMATCHED = "(none)"


class Access:
    def __init__(self, app: ASGIApp, requests: Counter, seconds: Histogram) -> None:
        self._app = app
        self._requests = requests
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        call = _Call(scope, send)
        try:
            await self._answer(call, scope, receive)
        finally:
            self._count(call)
            call.log()

    async def _answer(self, call: "_Call", scope: Scope, receive: Receive) -> None:
        try:
            await self._app(scope, receive, call.send)
        except ClientDisconnect:
            return  # nobody is left to be answered
        except Exception as error:
            known = as_tristore_error(error)
            answer = problem(known, scope)
            if answer.status_code >= 500 and answer.status_code != 503:
                _log.exception("unexpected error", extra={"route": call.route})
            if call.status is None:
                await answer(scope, receive, call.send)

    def _count(self, call: "_Call") -> None:
        labels = (call.method, call.route)
        self._requests.add(1, *labels, str(call.status or 499))
        if call.answered_after is not None:
            self._seconds.observe(call.answered_after, *labels)


class _Call:
    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._start = time.perf_counter()
        self.method: str = scope.get("method", "WS")
        self.status: int | None = None
        self.close_code: int | None = None
        # Until the answer began: a stream that stays open for hours is not a slow request.
        self.answered_after: float | None = None

    @property
    def route(self) -> str:
        # The template, never the path: a path may hold anything, and without bound.
        return getattr(self._scope.get("route"), "path", UNMATCHED)

    async def send(self, message: Message) -> None:
        kind = message["type"]
        if kind.endswith("http.response.start"):
            self._begin(message["status"])
        elif kind == "websocket.accept":
            self._begin(101)
        elif kind == "websocket.close":
            self.close_code = message.get("code", 1000)
            if self.status is None:
                self._begin(403)
        await self._send(message)

    def _begin(self, status: int) -> None:
        self.status = status
        self.answered_after = time.perf_counter() - self._start

    def log(self) -> None:
        principal = self._scope.get("state", {}).get("principal")
        line = {
            "method": self.method,
            "route": self.route,
            "status": self.status,
            "closeCode": self.close_code,
            "ms": round((time.perf_counter() - self._start) * 1000, 1),
            "principal": principal.name if principal else None,
        }
        _log.info(
            "request", extra={name: value for name, value in line.items() if value is not None}
        )
