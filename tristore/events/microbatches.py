"""Micro-batches: jobs that wait are settled together; one that comes alone waits for nobody.

Two stages keep the processor and the database busy at once: while Postgres commits one batch,
the next is read and checked. Batches are settled in the order they were taken.
"""

import asyncio
from typing import Protocol

from tristore.events.batch import Batch
from tristore.events.queue import RawJob

# Enough to share a commit among thousands of events, small enough to keep the head row free.
MAX_BATCH_BYTES = 1024 * 1024


class Ingress(Protocol):
    def examine(self, jobs: list[RawJob]) -> Batch: ...
    async def settle(self, batch: Batch) -> None: ...
    async def settle_alone(self, job: RawJob) -> None: ...


Waiting = tuple[RawJob, asyncio.Future[None]]


class MicroBatches:
    def __init__(self, ingress: Ingress) -> None:
        self._ingress = ingress
        self._arrived: asyncio.Queue[Waiting] = asyncio.Queue()
        self._examined: asyncio.Queue[tuple[Batch | RawJob, list[Waiting]]] = asyncio.Queue(1)
        self._held: Waiting | None = None

    async def store(self, job: RawJob) -> None:
        """Returns when the job's events are in the log or the dead letters."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrived.put_nowait((job, done))
        await done

    async def run(self) -> None:
        async with asyncio.TaskGroup() as stages:
            stages.create_task(self._examine(), name="examine")
            stages.create_task(self._settle(), name="settle")

    async def _examine(self) -> None:
        while True:
            taken = await self._take()
            if taken[0][0].stalled:
                await self._examined.put((taken[0][0], taken))
            else:
                batch = self._ingress.examine([job for job, _ in taken])
                await self._examined.put((batch, taken))

    async def _take(self) -> list[Waiting]:
        """One job that a dead worker held, alone; or every calm one that waits, up to the size."""
        first = self._held or await self._arrived.get()
        self._held, taken, size = None, [first], len(first[0].data)
        while not first[0].stalled and not self._arrived.empty() and size < MAX_BATCH_BYTES:
            following = self._arrived.get_nowait()
            if following[0].stalled:
                self._held = following
                break
            taken.append(following)
            size += len(following[0].data)
        return taken

    async def _settle(self) -> None:
        while True:
            work, taken = await self._examined.get()
            if isinstance(work, RawJob):
                await self._ingress.settle_alone(work)
            else:
                await self._ingress.settle(work)
            for _, done in taken:
                if not done.done():
                    done.set_result(None)
