"""A file on its way to a reader; a whole one is checked, and what is damaged never ends well."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tristore.errors import ContentDamaged, TristoreError

_log = logging.getLogger(__name__)
# Hashed beside the event loop from here on; below, the way to a thread costs more.
_LARGE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Body:
    """`checksum` is None where the bytes cannot be compared: a part of a file, or a file that was
    imported without one. `damaged` is told when they turn out wrong."""

    content: AsyncIterator[bytes]
    checksum: str | None
    damaged: Callable[[], Awaitable[None]]

    async def pieces(self) -> AsyncIterator[bytes]:
        """One piece is always held back, so that the last is given only when all are right."""
        digest, held = hashlib.sha256(), b""
        async for piece in self.content:
            if held:
                yield held
            if self.checksum is not None:
                await _add(digest, piece)
            held = piece
        if self.checksum not in (None, f"sha256:{digest.hexdigest()}"):
            await self.damaged()
            raise ContentDamaged(
                "the bytes on the mount are not those that were stored; the file is being "
                "reconciled, put it again or restore it"
            )
        if held:
            yield held

    async def close(self) -> None:
        close = getattr(self.content, "aclose", None)
        if close is not None:
            await close()


async def _add(digest: "hashlib._Hash", piece: bytes) -> None:
    if len(piece) < _LARGE:
        digest.update(piece)
    else:
        await asyncio.to_thread(digest.update, piece)


class Download(Response):
    """Begins to answer with the first piece: an error before it is still a proper refusal. After
    it, the only way to tell the reader is to cut the connection short of the announced length."""

    def __init__(self, body: Body, status: int, headers: Mapping[str, str]) -> None:
        self._body = body
        self.status_code = status
        self.background = None
        self.raw_headers = Headers(headers).raw

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader = _Reader(receive)
        started = False
        try:
            async for piece in self._body.pieces():
                if not started:
                    await self._start(send)
                    started = True
                elif reader.gone():
                    return
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            if not started:
                await self._start(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TristoreError as error:
            if not started:
                raise
            _log.error("a download was cut: %s", error, extra={"error": type(error).__name__})
        finally:
            reader.close()
            await self._body.close()

    async def _start(self, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )


class _Reader:
    """Notices that the reader has gone; the server itself would swallow the rest silently."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left: asyncio.Task[None] | None = None

    def gone(self) -> bool:
        if self._left is None:
            self._left = asyncio.create_task(self._wait())
        return self._left.done()

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def close(self) -> None:
        if self._left is not None:
            self._left.cancel()
