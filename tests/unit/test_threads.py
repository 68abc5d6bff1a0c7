"""Calls in a mount's threads: whoever is cancelled waits for the call, and errors arrive."""

import asyncio
import threading

import pytest

from tristore.filestore.threads import Threads


async def test_a_cancelled_caller_is_released_only_after_its_call() -> None:
    threads, may_end, ended = Threads("test"), threading.Event(), threading.Event()

    def call() -> None:
        may_end.wait(60)
        ended.set()

    caller = asyncio.create_task(threads.run(call))
    await asyncio.sleep(0)
    caller.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    assert not caller.done(), "what the call touches could be used twice"
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()
    threads.close()


async def test_an_error_reaches_the_caller_and_the_thread_lives_on() -> None:
    threads = Threads("test")

    def fail() -> None:
        raise FileNotFoundError("gone")

    for _ in range(3):
        with pytest.raises(FileNotFoundError, match="gone"):
            await threads.run(fail)
    assert await threads.run(max, 3, 4) == 4
    threads.close()


async def test_more_calls_than_threads_are_all_made() -> None:
    threads = Threads("test")
    lock, together, most = threading.Lock(), 0, 0

    def call(number: int) -> int:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        with lock:
            together -= 1
        return number

    answers = await asyncio.gather(*(threads.run(call, number) for number in range(100)))
    assert answers == list(range(100))
    assert 1 <= most <= 16
    threads.close()


async def test_closing_waits_for_the_calls_that_were_made() -> None:
    threads, done = Threads("test"), threading.Event()
    call = threads.start(done.set)
    await asyncio.to_thread(threads.close)
    assert done.is_set()
    await call
