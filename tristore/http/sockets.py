"""WebSockets as uvicorn speaks them, for readers that may be many, slow or gone.

Two things are added. A frame that is the same for every reader is written as the bytes it was
made into once. And a reader that has stopped reading can be closed: uvicorn would wait for room
in its buffer to say so, for ever.
"""

import socket
from asyncio import BaseTransport, TimerHandle
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from tristore.http.protocol import Refusal

# The name under which the application finds that it may send ready-made frames.
FRAMES = "tristore.frames"
_ABORT_SECONDS = 25.0
# The kernel keeps twice this for what a reader has not taken yet, instead of megabytes.
_SEND_BUFFER = 64 * 1024
# Room that is made at the end, so that what lies in our buffer and the close frame reach the
# kernel; it delivers them whenever the reader wakes up, and our side is rid of the connection.
_LAST_BUFFER = 1024 * 1024
# Who does not read does not answer a close frame either.
_GOODBYE_SECONDS = 1.0
_BAD_HANDSHAKE = Refusal(HTTPStatus.BAD_REQUEST, "that is not a WebSocket handshake")


class ReaderSockets(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unread: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        self._set_send_buffer(_SEND_BUFFER)

    def connection_lost(self, exc: Exception | None) -> None:
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # A header line the library finds too long, say: it gives up without a word.
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.transport.write(_BAD_HANDSHAKE.as_bytes())
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(_ABORT_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    async def run_asgi(self) -> None:
        self.scope["extensions"][FRAMES] = {}
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        if (frames := message.get("frames")) is not None:
            await self._send_frames(frames)
            return
        if message["type"] == "websocket.close" and not self.writable.is_set():
            self._set_send_buffer(_LAST_BUFFER)
            self.writable.set()
            self.close_timeout = _GOODBYE_SECONDS
        await super().send(message)

    async def _send_frames(self, frames: bytes) -> None:
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.conn.state is not State.OPEN:
            raise ClientDisconnected
        self.transport.write(frames)

    def _set_send_buffer(self, size: int) -> None:
        if (found := self.transport.get_extra_info("socket")) is not None:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
