"""The head of an answer waits for its body, so that both leave in one packet."""

from asyncio import AbstractEventLoop, Handle, Transport
from typing import Any

Buffer = bytes | bytearray | memoryview
_HEAD = b"HTTP/1.1 "
# From here on joining costs more than a second write.
_LARGE = 64 * 1024


class OneWrite:
    """A transport. uvicorn writes the head by itself, and each write wakes the client, which can
    do nothing with a head alone. What comes no later than the next turn of the loop goes with it.
    """

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self.own = transport
        self._loop = loop
        self._held = b""
        self._turn: Handle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def write(self, data: Buffer) -> None:
        if self._held:
            self._join(data)
        elif isinstance(data, bytes) and data.startswith(_HEAD):
            self._held = data
            self._turn = self._loop.call_soon(self.flush)
        else:
            self.own.write(data)

    def write_eof(self) -> None:
        self.flush()
        self.own.write_eof()

    def close(self) -> None:
        self.flush()
        self.own.close()

    def flush(self) -> None:
        if self._turn is not None:
            self._turn.cancel()
            self._turn = None
        held, self._held = self._held, b""
        if held and not self.own.is_closing():
            self.own.write(held)

    def _join(self, data: Buffer) -> None:
        if len(data) < _LARGE:
            self._held = b"".join((self._held, data))
            self.flush()
        else:
            self.flush()
            self.own.write(data)
