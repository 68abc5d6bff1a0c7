"""Request bodies: counted while they stream, never decompressed, and JSON read strictly."""

import re
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tristore.errors import EncodedBody, InvalidJson, TooLarge, TristoreError
from tristore.events import strictjson
from tristore.problem import problem

# These routes read their JSON strictly themselves, and list what is wrong in their own terms.
READS_ITSELF = frozenset({"/v1/events", "/metastore/v1/records", "/metastore/v1/records/bulk"})
# What is put there is content, however large and whatever it calls itself; the route counts it.
CONTENT = "/filestore/v1/files/"
ROWS = re.compile(r"/timestore/v1/datasets/[^/]+/ingest")
# Levels a request may put around an event or a schema.
_WRAPPED = 8
_GONE: Message = {"type": "http.disconnect"}


class Bodies:
    """`larger`: the limits of paths that take more than the others."""

    def __init__(self, app: ASGIApp, max_bytes: int, larger: Mapping[str, int]) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _check_encoding(Headers(scope=scope))
            if not _is_content(scope):
                receive, send = await self._counted(scope, receive, send)
        except TristoreError as refusal:
            await problem(refusal, scope)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> tuple[Receive, Send]:
        headers = Headers(scope=scope)
        most = self._larger.get(scope["path"], self._max_bytes)
        counted = _Counted(receive, send, most, scope)
        counted.check_announced(headers.get("content-length", "0"))
        if _is_json(headers) and scope["path"] not in READS_ITSELF:
            await counted.check_json()
        return counted.receive, counted.send


class _Counted:
    """Stands between the server and the application. When a body grows too large it answers
    itself: the application may be reading in a place where an error would change its meaning."""

    def __init__(self, receive: Receive, send: Send, most: int, scope: Scope) -> None:
        self._receive = receive
        self._send = send
        self._most = most
        self._scope = scope
        self._seen = 0
        self._started = False
        self._over = False
        self._read: list[Message] = []

    def check_announced(self, length: str) -> None:
        if length.isascii() and length.isdigit() and int(length[:20]) > self._most:
            raise self._refusal()

    async def check_json(self) -> None:
        """Reads the whole body, and keeps it for the application."""
        body, more = bytearray(), True
        while more:
            message = await self._receive()
            self._read.append(message)
            more = bool(message.get("more_body"))
            body += message.get("body", b"")
            if len(body) > self._most:
                raise self._refusal()
        try:
            if body:
                strictjson.loads(bytes(body), wrapped=_WRAPPED)
        except strictjson.StrictJsonError as error:
            raise InvalidJson(str(error)) from None

    async def receive(self) -> Message:
        if self._over:
            return _GONE
        if self._read:
            return self._read.pop(0)
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen <= self._most:
            return message
        self._over = True
        if not self._started:
            await problem(self._refusal(), self._scope)(self._scope, self._receive, self._send)
        return _GONE

    async def send(self, message: Message) -> None:
        if not self._over:
            self._started = True
            await self._send(message)

    def _refusal(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._most} bytes; send less at a time")


def _is_content(scope: Scope) -> bool:
    path = str(scope["path"])
    if scope["method"] == "POST":
        return ROWS.fullmatch(path) is not None
    return scope["method"] == "PUT" and path.startswith(CONTENT)


def _check_encoding(headers: Headers) -> None:
    given = ",".join(headers.getlist("content-encoding")).strip().lower()
    if given not in ("", "identity"):
        raise EncodedBody("compressed bodies are not taken; send it without Content-Encoding")


def _is_json(headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.endswith(("/json", "+json"))
