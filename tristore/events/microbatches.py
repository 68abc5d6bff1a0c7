"""Micro-batches: jobs that wait are settled together; one that comes alone waits for nobody.

Two stages keep the processor and the database busy at once: while Postgres commits one batch,
the next is read and checked. Batches are settled in the order they were taken.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from tristore.events.batch import Batch
from tristore.events.rawjob import RawJob

# Enough to share a commit among thousands of events, small enough to keep the head row free.
MAX_BATCH_BYTES = 1024 * 1024
# The first death may be anybody's; after the second, each of the job's events goes alone.
SUSPECT = 2


class Ingress(Protocol):
    async def examine(self, jobs: Sequence[RawJob]) -> Batch: ...
    async def settle(self, batch: Batch) -> None: ...
    async def settle_alone(self, job: RawJob) -> None: ...


Stored = Callable[[Sequence[RawJob]], None]


class MicroBatches:
    def __init__(self, ingress: Ingress) -> None:
        self._ingress = ingress
        self._arrived: asyncio.Queue[RawJob] = asyncio.Queue()
        self._examined: asyncio.Queue[tuple[Batch | RawJob, list[RawJob]]] = asyncio.Queue(1)
        self._held: RawJob | None = None

    def submit(self, jobs: Sequence[RawJob]) -> None:
        for job in jobs:
            self._arrived.put_nowait(job)

    async def run(self, stored: Stored) -> None:
        """Calls `stored` with jobs whose events are in the log or the dead letters."""
        async with asyncio.TaskGroup() as stages:
            stages.create_task(self._examine(), name="examine")
            stages.create_task(self._settle(stored), name="settle")

    async def _examine(self) -> None:
        while True:
            taken = await self._take()
            if taken[0].stalled >= SUSPECT:
                await self._examined.put((taken[0], taken))
            else:
                await self._examined.put((await self._ingress.examine(taken), taken))

    async def _take(self) -> list[RawJob]:
        """One job that a dead worker held, alone; or every calm one that waits, up to the size."""
        first = self._held or await self._arrived.get()
        self._held, taken, size = None, [first], len(first.data)
        while not first.stalled and not self._arrived.empty() and size < MAX_BATCH_BYTES:
            following = self._arrived.get_nowait()
            if following.stalled:
                self._held = following
                break
            taken.append(following)
            size += len(following.data)
        return taken

    async def _settle(self, stored: Stored) -> None:
        while True:
            work, taken = await self._examined.get()
            if isinstance(work, RawJob):
                await self._ingress.settle_alone(work)
            else:
                await self._ingress.settle(work)
            stored(taken)
