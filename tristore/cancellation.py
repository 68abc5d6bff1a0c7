"""Tasks that end when told to, although their libraries may lose the word.

redis-py may swallow a cancellation or turn it into an error of its own; psycopg answers it with
the error of the statement it cancelled. A loop that carries on after errors would then run for
ever: it asks here before it does.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


def obey_cancellation() -> None:
    """Raises the cancellation that this task was sent, if any."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def obedient(call: Awaitable[T]) -> T:
    """The call's outcome, or the cancellation that came meanwhile."""
    try:
        return await call
    finally:
        obey_cancellation()
