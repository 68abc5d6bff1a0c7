"""The consumer: takes jobs from the queue, has their events stored, then acknowledges."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Protocol
from uuid import uuid4

from redis.exceptions import RedisError

from tristore.cancellation import obedient
from tristore.events.bullmq_jobs import BullJobs, Taken
from tristore.events.rawjob import RawJob

_log = logging.getLogger(__name__)
_AWAY = (RedisError, OSError)
_MOST_AT_ONCE = 100
_RETRY_SECONDS = 0.25
_DRAIN_SECONDS = 3.0


class Sink(Protocol):
    """Stores what is submitted and calls back with jobs whose events are safe."""

    def submit(self, jobs: Sequence[RawJob]) -> None: ...
    async def run(self, stored: Callable[[Sequence[RawJob]], None]) -> None: ...


class QueueConsumer:
    """Holds at most `limit` jobs; what a dying one holds goes to another after the lock."""

    def __init__(
        self, redis_url: str, queue: str, sink: Sink, *, limit: int, lock_seconds: float
    ) -> None:
        self._jobs = BullJobs(redis_url, queue, uuid4().hex, lock_seconds)
        self._sink = sink
        self._limit = limit
        self._lock_seconds = lock_seconds
        self._held: set[str] = set()
        self._stored: asyncio.Queue[str] = asyncio.Queue()
        self._room = asyncio.Event()
        self._away = False

    async def run(self) -> None:
        """Works until cancelled; then lets what it holds be stored, within a few seconds. An
        error in any task ends the process, which is restarted: a part must not idle."""
        # A batch is thousands of objects that go when it is stored, by themselves. Looking for
        # cycles among them again and again took a third of the worker's time.
        gc.set_threshold(200_000, 20, 20)
        taking = asyncio.create_task(self._for_ever(self._take), name="take")
        others = [
            asyncio.create_task(self._sink.run(self._on_stored), name="sink"),
            asyncio.create_task(self._for_ever(self._finish), name="finish"),
            asyncio.create_task(self._for_ever(self._keep), name="keep"),
            asyncio.create_task(self._for_ever(self._rescue), name="rescue"),
        ]
        try:
            done, _ = await asyncio.wait({taking, *others}, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            await self._end(taking, others)

    async def _end(self, taking: asyncio.Task[None], others: list[asyncio.Task[None]]) -> None:
        taking.cancel()
        await asyncio.gather(self._stop_waiting(), asyncio.wait({taking}))
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._held and not any(task.done() for task in others):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            _log.warning("stopped with jobs in hand", extra={"jobs": len(self._held)})
        for task in others:
            task.cancel()
        await asyncio.wait(others)
        await self._jobs.close()

    async def _stop_waiting(self) -> None:
        """Without this the end is a second later, no more."""
        with suppress(*_AWAY, TimeoutError):
            async with asyncio.timeout(1):
                await self._jobs.stop_waiting()

    async def _take(self) -> None:
        more = True
        while True:
            room = self._limit - len(self._held)
            if room <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            asking = (
                self._jobs.take(min(_MOST_AT_ONCE, room)) if more else self._jobs.wait_and_take()
            )
            more = await _unbroken(self._take_some(asking))

    async def _take_some(self, asking: Awaitable[Taken]) -> bool:
        taken = await asking
        self._held.update(job.id for job in taken.jobs)
        self._sink.submit(taken.jobs)
        self._back()
        return taken.more

    def _on_stored(self, jobs: Sequence[RawJob]) -> None:
        for job in jobs:
            self._stored.put_nowait(job.id)

    async def _finish(self) -> None:
        while True:
            done = [await self._stored.get()]
            while not self._stored.empty() and len(done) < _MOST_AT_ONCE:
                done.append(self._stored.get_nowait())
            try:
                await obedient(self._jobs.finish(done))
            finally:
                # If this failed, the lock runs out and the job comes again: a duplicate, which
                # the log knows.
                self._held.difference_update(done)
                self._room.set()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._lock_seconds / 3)
            if held := list(self._held):
                await obedient(self._jobs.keep(held))

    async def _rescue(self) -> None:
        while True:
            if found := await obedient(self._jobs.rescue()):
                _log.warning("jobs of a dead worker put back", extra={"jobs": found})
            await asyncio.sleep(self._lock_seconds / 2)

    async def _for_ever(self, work: Callable[[], Awaitable[None]]) -> None:
        """Through outages of Redis, which are told once at their start and end."""
        while True:
            try:
                await work()
            except _AWAY as error:
                if not self._away:
                    self._away = True
                    _log.warning("queue away", extra={"error": f"{type(error).__name__}: {error}"})
                await asyncio.sleep(_RETRY_SECONDS)

    def _back(self) -> None:
        if self._away:
            self._away = False
            _log.warning("queue back")


async def _unbroken(work: Coroutine[None, None, bool]) -> bool:
    """Cancelled only once the work is done: a job taken in Redis must also be held here. Only a
    Redis that does not answer is not waited for."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=_DRAIN_SECONDS)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
