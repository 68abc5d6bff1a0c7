"""A live connection: one position in the log, sent on as fast as its client reads."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence

import orjson
from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect

from tristore.errors import PositionAhead, PositionGone
from tristore.events.log import Stored
from tristore.events.tail import Tail
from tristore.tokens import Principal, Tokens

TOKEN_ENDED, TOO_SLOW, AHEAD, GONE, TOO_MANY = 4401, 4408, 4409, 4410, 4429
SEND_SECONDS = 10.0
RECHECK_SECONDS = 30.0
SOCKETS_PER_TOKEN = 20


class TypeFilter:
    """`a.b.c` or `a.*`; no pattern at all means every type."""

    def __init__(self, patterns: Sequence[str]) -> None:
        parts = [_regex(pattern) for pattern in patterns]
        self._match = re.compile("|".join(parts)).fullmatch if parts else None

    def __call__(self, row: Stored) -> bool:
        return self._match is None or self._match(row.type) is not None


def _regex(pattern: str) -> str:
    if pattern == "*":
        return ".*"
    if pattern.endswith(".*"):
        return re.escape(pattern[:-1]) + ".*"
    return re.escape(pattern)


class LiveFeed:
    """Serves WebSockets from the shared tail."""

    def __init__(self, tail: Tail, tokens: Tokens) -> None:
        self._tail = tail
        self._tokens = tokens
        self._open: Counter[str] = Counter()

    async def serve(self, socket: WebSocket, wanted: TypeFilter, since: int | None) -> None:
        principal: Principal = socket.state.principal
        await socket.accept()
        if self._open[principal.id] >= SOCKETS_PER_TOKEN:
            await socket.close(TOO_MANY, "too many sockets for this token")
            return
        self._open[principal.id] += 1
        try:
            position = await self._tail.position(since)
            await self._until_one_ends(socket, wanted, position)
        except PositionAhead as refusal:
            await socket.close(AHEAD, f"last={refusal.last}")
        except PositionGone as refusal:
            await socket.close(GONE, f"earliest={refusal.earliest}")
        finally:
            self._open[principal.id] -= 1

    async def _until_one_ends(self, socket: WebSocket, wanted: TypeFilter, position: int) -> None:
        """Sends, watches for the client's goodbye and for the end of its token, all at once."""
        tasks = {
            asyncio.create_task(self._send(socket, wanted, position)),
            asyncio.create_task(_drain(socket)),
            asyncio.create_task(self._recheck(socket)),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            if (error := task.exception()) and not isinstance(error, WebSocketDisconnect):
                raise error

    async def _send(self, socket: WebSocket, wanted: TypeFilter, position: int) -> None:
        try:
            await _frame(socket, {"kind": "position", "sequence": position})
            while True:
                for row in await self._tail.after(position):
                    position = row.ingress_sequence
                    if shown := wanted(row):
                        frame = {"kind": "event", "sequence": position, "event": row.to_json()}
                        await _frame(socket, frame)
                if not shown:
                    await _frame(socket, {"kind": "position", "sequence": position})
        except TimeoutError:
            await socket.close(TOO_SLOW, f"resume since={position}")

    async def _recheck(self, socket: WebSocket) -> None:
        token = socket.headers["authorization"].partition(" ")[2].strip()
        while await self._tokens.find(token):
            await asyncio.sleep(RECHECK_SECONDS)
        await socket.close(TOKEN_ENDED, "the token has ended")


async def _frame(socket: WebSocket, frame: dict[str, object]) -> None:
    # No queue of our own: the transport's buffer fills, this waits, and then the reader is late.
    async with asyncio.timeout(SEND_SECONDS):
        await socket.send_text(orjson.dumps(frame).decode())


async def _drain(socket: WebSocket) -> None:
    while True:
        await socket.receive()
