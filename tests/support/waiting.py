"""Waits for a state with a deadline, instead of sleeping and hoping."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


async def until(ask: Callable[[], Awaitable[T]], seconds: float = 60) -> T:
    """The first truthy answer; fails with the last one when time runs out."""
    deadline, pauses = time.monotonic() + seconds, _pauses()
    while not (answer := await ask()):
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        await asyncio.sleep(next(pauses))
    return answer


def wait_until(ask: Callable[[], T], seconds: float = 60) -> T:
    deadline, pauses = time.monotonic() + seconds, _pauses()
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        time.sleep(next(pauses))
    return answer


def _pauses() -> Iterator[float]:
    """Longer and longer: what is waited for needs the processor too."""
    pause = 0.01
    while True:
        yield pause
        pause = min(pause * 1.2, 0.1)
