"""What operators see: structured logs, and the id that ties a request to its events."""

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

correlation_id: ContextVar[str | None] = ContextVar("correlation_id", default=None)
request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


class JsonFormatter(logging.Formatter):
    """One JSON object a line, so that no value can forge a second line."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "part": self._part,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, variable in (("requestId", request_id), ("correlationId", correlation_id)):
            if found := variable.get():
                line[name] = found
        line |= {k: v for k, v in vars(record).items() if k not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:  # half a character, or a number too large, in what a stranger sent
            return json.dumps(line, default=str)


def configure_logs(part: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(part))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # At info it writes the address of every socket, tickets included; `http.access` does not.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


class RequestIds:
    """Gives every request an id and a correlation id, and answers with the latter."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-correlation-id", "")
        chosen = given if 0 < len(given) <= 200 and given.isprintable() else uuid4().hex
        number = uuid4().hex
        scope.setdefault("state", {}).update(request_id=number, correlation_id=chosen)
        correlated, numbered = correlation_id.set(chosen), request_id.set(number)

        async def sending(message: Message) -> None:
            if message["type"].endswith("http.response.start"):
                MutableHeaders(scope=message)["X-Correlation-Id"] = chosen
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            correlation_id.reset(correlated)
            request_id.reset(numbered)
