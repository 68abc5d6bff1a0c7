"""Keeps one server or part running: starts it, restarts it when it dies, stops it for good."""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)

SHORTEST_PAUSE = 0.5
LONGEST_PAUSE = 10.0
# Seconds of life after which a death counts as the first one again.
SETTLED = 30.0


class Service(Protocol):
    """`start` and `stop` block, and are called from threads; `stop` may interrupt a `start`."""

    @property
    def name(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...


class Keeper:
    def __init__(self, service: Service, changed: Callable[[], None]) -> None:
        self.service = service
        self._changed = changed
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> object:
        """What the service's own first `start` returns or raises; later ones are only logged."""
        first: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep(first))
        return await first

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self.service.stop)
        if self._task:
            await self._task

    async def _keep(self, first: asyncio.Future[object]) -> None:
        try:
            result = await asyncio.to_thread(self.service.start)
        except Exception as error:
            if not first.cancelled():
                first.set_exception(error)
            return
        if not first.cancelled():
            first.set_result(result)
        await self._restart_for_ever()
        # `stop` may have come while a start was under way.
        await asyncio.to_thread(self.service.stop)

    async def _restart_for_ever(self) -> None:
        pause = 0.0
        while not self._stopping.is_set():
            self._changed()
            began = time.monotonic()
            await exited(self.service.pid)
            if self._stopping.is_set():
                return
            pause = next_pause(pause, lived=time.monotonic() - began)
            self._changed()
            self._tell("died", exitCode=self.service.poll(), restartInSeconds=pause)
            if await self._stopped_within(pause):
                return
            await self._start_again()

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _start_again(self) -> None:
        try:
            await asyncio.to_thread(self.service.start)
        except Exception as error:
            # Whatever it is, the next try may go well; a keeper that gives up helps nobody.
            self._tell("not restarted", reason=f"{type(error).__name__}: {error}")
        else:
            self._tell("restarted", pid=self.service.pid)

    def _tell(self, what: str, **fields: object) -> None:
        log.warning("%s %s", self.service.name, what, extra={"child": self.service.name, **fields})


def next_pause(last: float, lived: float) -> float:
    if lived >= SETTLED:
        return SHORTEST_PAUSE
    return min(max(last * 2, SHORTEST_PAUSE), LONGEST_PAUSE)


async def exited(pid: int | None) -> None:
    if pid is None:
        return
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
