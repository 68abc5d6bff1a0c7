"""Live connections: each a position in the log, sent on as fast as its client reads."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from types import TracebackType

import psycopg
from fastapi import WebSocket
from psycopg_pool import PoolTimeout
from starlette.websockets import WebSocketDisconnect, WebSocketDisconnected

from tristore.cancellation import obey_cancellation
from tristore.config import HttpSettings
from tristore.errors import (
    PositionAhead,
    PositionGone,
    TooMany,
    TristoreError,
    Unauthenticated,
    Unavailable,
)
from tristore.events.live.audience import Reader
from tristore.events.live.frame import Frame
from tristore.events.live.tail import Tail
from tristore.events.type_filter import TypeFilter
from tristore.problem import as_tristore_error
from tristore.tokens import Principal, Tokens

TOKEN_ENDED, TOO_SLOW, AHEAD, GONE, POLICY, TRY_AGAIN = 4401, 4408, 4409, 4410, 1008, 1013
# Readers have nothing to say; a few messages are forgiven, a stream of them is not.
MESSAGES_PER_PERIOD = 100
PERIOD_SECONDS = 10.0
# One write holds frames up to this, so that a stalled client costs little more than one of them.
_WRITE_BYTES = 64 * 1024
# The server's side of this name is in tristore/http/sockets.py.
_FRAMES = "tristore.frames"
_GONE_AWAY = (WebSocketDisconnect, WebSocketDisconnected)
_log = logging.getLogger(__name__)


class LiveFeed:
    """Serves WebSockets and event streams from the shared tail."""

    def __init__(self, tail: Tail, tokens: Tokens, settings: HttpSettings) -> None:
        self._tail = tail
        self._tokens = tokens
        self._settings = settings
        self._open: dict[str, set[Reader]] = {}

    async def __aenter__(self) -> "LiveFeed":
        self._watching = asyncio.create_task(self._watch_tokens(), name="token-watch")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._watching.cancel()
        await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch_tokens(self) -> None:
        """Ends the readers of tokens that have ended."""
        while True:
            await asyncio.sleep(self._settings.recheck_seconds)
            asked = list(self._open)
            try:
                alive = await self._tokens.alive(asked)
            except (psycopg.Error, PoolTimeout) as error:
                obey_cancellation()
                _log.warning("tokens cannot be checked", extra={"error": type(error).__name__})
                continue
            # Only those that were asked about: others may have come in the meantime.
            for token_id in set(asked) - alive:
                for reader in self._open.get(token_id, ()):
                    reader.fail(Unauthenticated("the token has ended"))

    async def serve(self, socket: WebSocket, wanted: TypeFilter, since: int | None) -> None:
        await socket.accept()
        try:
            reader = Reader(wanted, await self._tail.position(since))
            with self._room(socket.state.principal, reader):
                await self._talk(socket, reader)
        except _GONE_AWAY:
            return
        except (TristoreError, psycopg.Error, PoolTimeout) as error:
            obey_cancellation()
            with suppress(*_GONE_AWAY):
                await socket.close(*_farewell(error))

    async def stream(
        self, principal: Principal, wanted: TypeFilter, since: int | None, idle_seconds: float
    ) -> AsyncGenerator[tuple[list[Frame], int]]:
        """Pages for an event stream; the first says where it starts. Refusals come before it."""
        reader = Reader(wanted, await self._tail.position(since))
        with self._room(principal, reader):
            yield [], reader.position
            async with aclosing(self._tail.pages(reader, idle_seconds)) as pages:
                async for page in pages:
                    yield page

    @contextmanager
    def _room(self, principal: Principal, reader: Reader) -> Iterator[None]:
        mine = self._open.setdefault(principal.id, set())
        if len(mine) >= (most := self._settings.sockets_per_token):
            raise TooMany(f"this token has {most} live streams open; close one")
        mine.add(reader)
        try:
            yield
        finally:
            mine.discard(reader)
            if not mine:
                self._open.pop(principal.id, None)

    async def _talk(self, socket: WebSocket, reader: Reader) -> None:
        """Sends, and listens for the client's goodbye; whichever ends first ends the other."""
        sending = asyncio.create_task(self._send(socket, reader))
        listening = asyncio.create_task(_listen(socket))
        tasks = {sending, listening}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def _send(self, socket: WebSocket, reader: Reader) -> None:
        sent = reader.position
        write = partial(_write, socket, self._settings.slow_seconds)
        try:
            await write([Frame.position(sent)])
            async with aclosing(self._tail.pages(reader)) as pages:
                async for frames, position in pages:
                    for part in _parts(frames):
                        await write(part)
                        sent = part[-1].sequence
                    if sent < position:
                        await write([Frame.position(position)])
                        sent = position
        except TimeoutError:
            await socket.close(TOO_SLOW, f"resume since={sent}")


def _parts(frames: list[Frame]) -> Iterator[list[Frame]]:
    """Frames in writes of bounded size; a frame that is larger goes alone."""
    part: list[Frame] = []
    size = 0
    for frame in frames:
        if part and size + len(frame.json) > _WRITE_BYTES:
            yield part
            part, size = [], 0
        part.append(frame)
        size += len(frame.json)
    if part:
        yield part


async def _write(socket: WebSocket, seconds: float, frames: list[Frame]) -> None:
    # No queue of our own: the transport's buffer fills, this waits, and then the reader is late.
    async with asyncio.timeout(seconds):
        if _FRAMES in socket.scope.get("extensions", {}):
            wire = b"".join([frame.for_websocket() for frame in frames])
            await socket.send({"type": "websocket.send", "frames": wire})
            return
        for frame in frames:
            await socket.send_text(frame.json.decode())


async def _listen(socket: WebSocket) -> None:
    count, since = 0, time.monotonic()
    while (await socket.receive())["type"] != "websocket.disconnect":
        now = time.monotonic()
        count, since = (count + 1, since) if now < since + PERIOD_SECONDS else (1, now)
        if count > MESSAGES_PER_PERIOD:
            await socket.close(POLICY, "too many messages; readers need send none")
            return


def _farewell(error: Exception) -> tuple[int, str]:
    refusal = error if isinstance(error, TristoreError) else as_tristore_error(error)
    match refusal:
        case PositionAhead():
            return AHEAD, f"last={refusal.last}"
        case PositionGone():
            return GONE, f"earliest={refusal.earliest}"
        case Unauthenticated():
            return TOKEN_ENDED, str(refusal)
        case Unavailable():
            return TRY_AGAIN, str(refusal)
        case _:
            return POLICY, str(refusal)
