"""Blocking calls of one mount, made in threads of its own."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# More than there are cores: most of them wait for a disk, and waiting together shares its syncs.
_THREADS = 16


class Call(asyncio.Future[T]):
    """A call in a thread. Whoever awaits it and is cancelled still waits for its end, and is
    cancelled then: what it touches must not be used twice."""

    def cancel(self, msg: Any = None) -> bool:
        return False

    def end(self, result: T | None, error: BaseException | None) -> None:
        if error is None:
            self.set_result(result)  # type: ignore[arg-type]
        else:
            self.set_exception(error)
            self.exception()  # a cancelled caller never asks, and nobody need be told of that


class Threads:
    """An executor for one loop. The standard one takes more than twice as long to hand a call over
    and its answer back, and a small upload has two of them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[tuple[Call[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._open = 0

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.start(call, *args, **kwargs)

    def start(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Call[T]:
        made: Call[T] = Call(loop=asyncio.get_running_loop())
        made.add_done_callback(self._ended)
        self._open += 1
        if self._open > len(self._threads) < _THREADS:
            self._hire()
        self._calls.put((made, partial(call, *args, **kwargs)))
        return made

    def close(self) -> None:
        """Waits for the calls that were made."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _hire(self) -> None:
        name = f"{self._name}_{len(self._threads)}"
        thread = Thread(target=self._work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _ended(self, _: object) -> None:
        self._open -= 1

    def _work(self) -> None:
        while (given := self._calls.get()) is not None:
            _carry_out(*given)
            del given  # a file that nobody else holds is closed now, not at the next call


def _carry_out(made: Call[T], call: Callable[[], T]) -> None:
    try:
        result = call()
    except BaseException as error:
        _tell(made, None, error)
    else:
        _tell(made, result, None)


def _tell(made: Call[T], result: T | None, error: BaseException | None) -> None:
    # A loop that was closed meanwhile has nobody left who waits.
    with suppress(RuntimeError):
        made.get_loop().call_soon_threadsafe(made.end, result, error)
