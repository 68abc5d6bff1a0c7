"""Blocking calls of one mount, made in threads of its own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# More than there are cores: most of them wait for a disk, and waiting together shares its syncs.
_THREADS = 16


class Threads:
    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A cancelled caller still waits for the call: what it touches must not be used twice."""
        return await finished(self.start(call, *args, **kwargs))

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        return loop.run_in_executor(self._executor, lambda: call(*args, **kwargs))

    def close(self) -> None:
        self._executor.shutdown(wait=True)


async def finished(call: "asyncio.Future[T]") -> T:
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        await asyncio.wait([call])
        if not call.cancelled():
            call.exception()
        raise
