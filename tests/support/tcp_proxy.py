"""A TCP proxy that loses connections at the worst moment: around a request it was told of."""

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

# `before`: the request is never passed on. `after`: it is, and its answer is dropped.
When = Literal["before", "after"]


class TcpProxy:
    """Runs in a thread of its own, so that a test may block while it works."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp-proxy")
        self._plan: _Plan | None = None
        self.cuts = 0

    def __enter__(self) -> "TcpProxy":
        self._thread.start()
        starting = asyncio.start_server(self._connected, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self, words: bytes, when: When, *, following: bytes) -> None:
        """The next request with these words loses its connection, if a request that `following`
        is part of went before it on the same one."""
        self._plan = _Plan(words, when, following)

    async def _close(self) -> None:
        self._server.close()
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            upstream = await asyncio.open_connection(*self._upstream)
            await _Connection(self, (reader, writer), upstream).run()

    def take_plan(self, connection: "_Connection", data: bytes) -> When | None:
        plan = self._plan
        if plan is None:
            return None
        if plan.following in data:
            plan.connection = connection
        if plan.connection is not connection or plan.words not in data:
            return None
        self._plan = None
        self.cuts += 1
        return plan.when


@dataclass
class _Plan:
    words: bytes
    when: When
    following: bytes
    connection: "_Connection | None" = None


class _Connection:
    def __init__(
        self,
        proxy: TcpProxy,
        client: tuple[StreamReader, StreamWriter],
        server: tuple[StreamReader, StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._client, self._server = client, server
        self._deaf = False

    async def run(self) -> None:
        tasks = [asyncio.create_task(self._requests()), asyncio.create_task(self._answers())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for _, writer in (self._client, self._server):
                writer.close()

    async def _requests(self) -> None:
        while data := await self._client[0].read(65536):
            when = self._proxy.take_plan(self, data)
            if when == "before":
                return
            self._deaf = when == "after"
            self._server[1].write(data)
            await self._server[1].drain()

    async def _answers(self) -> None:
        while data := await self._server[0].read(65536):
            if self._deaf:
                return
            self._client[1].write(data)
            await self._client[1].drain()
