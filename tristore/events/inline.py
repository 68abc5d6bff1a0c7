"""The bus without a queue: what the relay sends is settled at once, by the same ingress code."""

from collections.abc import Sequence
from typing import Protocol

from tristore.events.ingress import EventIngressWorker
from tristore.events.rawjob import RawJob
from tristore.events.wire import events_job


class Transport(Protocol):
    """What the relay sends through. When `add_events` returns, the events are under way or
    stored; when it raises `Unavailable`, they may be either, and are sent again."""

    async def check(self) -> None: ...
    async def add_events(self, bodies: Sequence[bytes], *, job_id: str) -> None: ...
    async def close(self) -> None: ...


class InlineTransport:
    def __init__(self, ingress: EventIngressWorker) -> None:
        self._ingress = ingress

    async def check(self) -> None:
        return None

    async def add_events(self, bodies: Sequence[bytes], *, job_id: str) -> None:
        job = RawJob(job_id, "events", events_job(bodies), timestamp_ms=0, stalled=0)
        await self._ingress.handle([job])

    async def close(self) -> None:
        return None
