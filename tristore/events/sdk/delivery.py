"""Delivery: one task that moves a publisher's events through a door, in order, until each is sent.

While the bus answers, a caller waits until its event is on the bus. Once it counts as away, a
caller waits only until its event is kept: in memory, or in a file that outlives the process.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tristore.config import PublisherSettings
from tristore.errors import (
    BufferFull,
    IdConflict,
    InvalidEvent,
    Terminal,
    TooLarge,
    TristoreError,
    Unavailable,
    Unsent,
)
from tristore.events.sdk.buffer import Buffer, packed
from tristore.events.sdk.retry import Backoff
from tristore.events.sdk.safekeeping import Safekeeping

_log = logging.getLogger(__name__)
# What is wrong with an event and not with the way to the bus.
_FAULTS = (InvalidEvent, IdConflict, TooLarge)


class Door(Protocol):
    """A way onto the bus.

    `send` is called by one task, with at least one event, again with the same ids after any
    failure. It returns when all of them are accepted, raises a Transient error when trying again
    may help, and a Terminal one when it will not; it must not try again by itself.
    """

    async def send(self, bodies: Sequence[bytes]) -> None: ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class Counters:
    """What a publisher has done since it was opened."""

    accepted: int = 0
    sent: int = 0
    refused: int = 0
    retries: int = 0
    outages: int = 0


class Delivery:
    def __init__(self, door: Door, settings: PublisherSettings, source: str) -> None:
        self._door = door
        self._settings = settings
        self._source = source
        self._buffer = Buffer(settings.buffer_events, settings.buffer_bytes)
        self._kept = Safekeeping(self._buffer, settings.buffer_path)
        self._backoff = Backoff(settings)
        self._arrived = asyncio.Event()  # wakes the sender alone
        self._changed = asyncio.Condition()  # wakes those who wait for room or for their event
        self._most = settings.job_events
        self._away: TristoreError | None = None
        self._away_since = 0.0
        self._released = 0  # up to here callers have gone on without waiting for the bus
        self._refusals: dict[int, TristoreError] = {}
        self._task: asyncio.Task[None] | None = None
        self.counters = Counters()

    @property
    def unsent(self) -> int:
        return len(self._buffer)

    async def start(self) -> None:
        if found := await self._kept.open():
            _log.warning("sending what an earlier process left", extra=self._extra(events=found))
        self._released = self._buffer.added
        self._task = asyncio.create_task(self._run(), name="publisher")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        try:
            await self._kept.close()
        finally:
            await self._door.close()

    async def put(self, bodies: Sequence[bytes]) -> None:
        """Returns when all are on the bus or, while it is away, kept in the buffer."""
        first = taken = 0
        most = min(self._settings.job_events, self._settings.buffer_events)
        try:
            for chunk in packed(bodies, most, self._settings.job_bytes):
                last = await self._take(chunk)
                first = first or last - len(chunk) + 1
                taken += len(chunk)
        except BufferFull as full:
            full.taken = taken
            raise
        if bodies:
            await self._settle(first, last)

    async def flush(self, seconds: float) -> None:
        """Waits until everything given so far is sent, or says how much is not."""
        target = self._buffer.added
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self._buffer.gone >= target)
        except TimeoutError:
            raise self._unsent() from None
        # Refusals of later numbers belong to callers that still wait for them.
        late = [number for number in self._refusals if number <= self._released]
        if refused := [self._refusals.pop(number) for number in late]:
            message = f"{len(refused)} events were refused by the bus, the first one: {refused[0]}"
            raise Unsent(len(refused), message)

    async def _take(self, bodies: Sequence[bytes]) -> int:
        """Their place in the buffer, as soon as there is room."""
        try:
            async with asyncio.timeout(self._settings.buffer_wait_seconds), self._changed:
                await self._changed.wait_for(lambda: self._buffer.fits(bodies))
                last = self._buffer.append(bodies)
                self._arrived.set()
        except TimeoutError:
            raise BufferFull(
                f"{len(self._buffer)} events are unsent and the buffer takes no more"
                f"{self._why()}; publish again with the same id when the bus is back"
            ) from None
        self.counters.accepted += len(bodies)
        return last

    async def _settle(self, first: int, last: int) -> None:
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._buffer.gone >= last or self._away is not None
            )
            if self._buffer.gone < last:
                self._released = max(self._released, last)
        if self._buffer.gone < last:
            await self._kept.secure(last)
        mine = [n for n in range(first, last + 1) if n in self._refusals] if self._refusals else []
        if refused := [self._refusals.pop(number) for number in mine]:
            raise refused[0]

    async def _run(self) -> None:
        while True:
            if not len(self._buffer):
                self._arrived.clear()
                await self._arrived.wait()
            await self._step()

    async def _step(self) -> None:
        batch = self._buffer.first(self._most, self._settings.job_bytes)
        try:
            await self._door.send(batch)
        except _FAULTS as fault:
            await self._refuse(batch, fault)
        except Terminal as refusal:
            await self._barred(refusal)
        except Exception as error:
            await self._failed(error)
        else:
            await self._delivered(len(batch))

    async def _delivered(self, count: int) -> None:
        self.counters.sent += count
        self._most = min(self._most * 2, self._settings.job_events)
        await self._leave(count)
        self._back()

    def _back(self) -> None:
        self._backoff.succeeded()
        if self._away is not None:
            seconds = round(asyncio.get_running_loop().time() - self._away_since, 1)
            self._away = None
            _log.warning("bus back, sending the buffer", extra=self._extra(away_seconds=seconds))

    async def _leave(self, count: int) -> None:
        async with self._changed:
            self._buffer.drop(count)
            self._changed.notify_all()
        await self._kept.forget()

    async def _refuse(self, batch: list[bytes], fault: TristoreError) -> None:
        """Finds the refused event by sending ever fewer at once, and takes it out."""
        self._back()
        if len(batch) > 1:
            self._most = max(1, len(batch) // 2)
            return
        number = self._buffer.gone + 1
        if number <= self._released:
            await self._kept.set_aside(batch[0])
            _log.error("event refused by the bus", extra=self._extra(error=str(fault)))
        self._refusals[number] = fault
        self.counters.refused += 1
        await self._leave(1)

    async def _barred(self, refusal: Terminal) -> None:
        """The door is shut to us (a wrong token, say). Callers that still wait are told; what
        was taken in before stays, since nothing is wrong with it."""
        if self._buffer.gone < self._released:
            await self._failed(refusal, at_once=True)
            return
        count = len(self._buffer)
        numbers = range(self._buffer.gone + 1, self._buffer.added + 1)
        self._refusals |= dict.fromkeys(numbers, refusal)
        self.counters.refused += count
        await self._leave(count)

    async def _failed(self, error: Exception, *, at_once: bool = False) -> None:
        pause = self._backoff.failed()
        self.counters.retries += 1
        if self._away is None and (at_once or self._backoff.exhausted):
            await self._gone(error)
        await asyncio.sleep(pause)

    async def _gone(self, error: Exception) -> None:
        known = error if isinstance(error, TristoreError) else Unavailable(repr(error))
        self._away_since = asyncio.get_running_loop().time()
        self._kept.start_afresh()
        self.counters.outages += 1
        _log.warning("bus away, events wait in the buffer", extra=self._extra(error=str(known)))
        async with self._changed:
            self._away = known
            self._changed.notify_all()

    def _unsent(self) -> Unsent:
        count = len(self._buffer)
        where = f"they are kept in {path} for the next start" if (path := self._kept.path) else ""
        message = f"{count} events are unsent{self._why()}"
        return Unsent(count, f"{message}; {where or 'they are lost when this process ends'}")

    def _why(self) -> str:
        return f" ({self._away})" if self._away else ""

    def _extra(self, **fields: object) -> dict[str, object]:
        return {"source": self._source, "unsent": len(self._buffer), **fields}
