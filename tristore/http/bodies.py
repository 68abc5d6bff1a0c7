"""Request bodies: counted while they stream, never decompressed, and JSON read strictly."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tristore.errors import EncodedBody, InvalidJson, TooLarge, TristoreError
from tristore.events import strictjson
from tristore.problem import problem

# These routes read their JSON strictly themselves, and list what is wrong in their own terms.
READS_ITSELF = frozenset({"/v1/events"})
# Levels a request may put around an event or a schema.
_WRAPPED = 8
_GONE: Message = {"type": "http.disconnect"}


class Bodies:
    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        counted = _Counted(receive, send, self._max_bytes, scope)
        try:
            _check_encoding(headers)
            counted.check_announced(headers.get("content-length", "0"))
            if _is_json(headers) and scope["path"] not in READS_ITSELF:
                await counted.check_json()
        except TristoreError as refusal:
            await problem(refusal, scope)(scope, receive, send)
            return
        await self._app(scope, counted.receive, counted.send)


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


def _check_encoding(headers: Headers) -> None:
    given = ",".join(headers.getlist("content-encoding")).strip().lower()
    if given not in ("", "identity"):
        raise EncodedBody("compressed bodies are not taken; send it without Content-Encoding")


def _is_json(headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.endswith(("/json", "+json"))
