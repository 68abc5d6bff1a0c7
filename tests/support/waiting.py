"""Waits for a state with a deadline, instead of sleeping and hoping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(ask: Callable[[], Awaitable[T]], seconds: float = 30) -> T:
    """The first truthy answer; fails with the last one when time runs out."""
    deadline = time.monotonic() + seconds
    while not (answer := await ask()):
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        await asyncio.sleep(0.02)
    return answer


def wait_until(ask: Callable[[], T], seconds: float = 30) -> T:
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"still {answer!r} after {seconds} s"
        time.sleep(0.02)
    return answer
