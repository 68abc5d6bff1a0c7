"""Whether the platform can be relied on now, and if not, why: looked at all the time, so that
the question itself is answered at once."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from tristore.background import Background
from tristore.errors import TristoreError
from tristore.events.admin import vitals
from tristore.events.admin.sync_health import SyncHealth
from tristore.events.admin.vitals import Pulse
from tristore.events.queue import EventQueue
from tristore.filestore import drifts
from tristore.filestore.drifts import Waiting
from tristore.problem import as_tristore_error
from tristore.wiring import Platform

OK = "ok"
LOOK_SECONDS = 1.0
ANSWER_SECONDS = 1.5
STUCK_SECONDS = 5.0
STALE_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Look:
    """`degraded` is what works, but not as well as it should; it makes nothing red."""

    at: float
    checks: dict[str, str]
    degraded: dict[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return all(state == OK for state in self.checks.values())


class Readiness(Background):
    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._relay = Stillness()
        self._ingress = Stillness()
        self._sync = Stillness()
        self._reconcile = Stillness()
        self._latest = Look(time.monotonic(), {"api": "starting"})

    def latest(self) -> Look:
        if time.monotonic() - self._latest.at > STALE_SECONDS:
            checks = {**self._latest.checks, "api": "is not looking any more"}
            return Look(self._latest.at, checks, self._latest.degraded)
        return self._latest

    async def _work(self) -> None:
        while True:
            self._latest = await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> Look:
        pool, namespace = self._platform.pool, self._platform.settings.records_of_nodes()
        beat, depth, sync, waiting = await asyncio.gather(
            _ask(vitals.pulse(pool)),
            _ask(_depth(self._platform.queue)),
            _ask(vitals.sync(pool, namespace)),
            _ask(drifts.waiting(pool)),
        )
        checks = {"postgres": beat if isinstance(beat, str) else OK}
        if self._platform.queue is not None:
            checks["redis"] = depth if isinstance(depth, str) else OK
        # What a worker does cannot be seen, and is not its fault, while a server is away.
        if isinstance(beat, Pulse) and isinstance(depth, int):
            relay, ingress = self._relay_state(beat), self._ingress_state(beat, depth)
            # Behind an ingress that stands still the relay rightly holds back.
            checks["relay"] = relay if ingress == OK else OK
            if self._platform.queue is not None:  # without a queue the relay stores by itself
                checks["ingress"] = ingress
        if isinstance(sync, SyncHealth):
            checks["sync"] = self._sync_state(sync)
        degraded = {}
        if isinstance(waiting, Waiting) and waiting.mounts:
            checks["reconcile"] = self._reconcile_state(waiting)
            if waiting.degraded_mounts:
                degraded["filestore"] = _not_watched(waiting)
        return Look(time.monotonic(), checks, degraded)

    def _relay_state(self, beat: Pulse) -> str:
        waits = beat.oldest_pending is not None
        if self._relay.seconds(waits, beat.oldest_pending) > STUCK_SECONDS:
            return f"stuck: an event has waited in the outbox for {beat.pending_seconds:.0f} s"
        if beat.oldest_enqueued is not None and beat.overdue_seconds > STUCK_SECONDS:
            return f"stuck: a lease ran out {beat.overdue_seconds:.0f} s ago and was not renewed"
        return OK

    def _ingress_state(self, beat: Pulse, depth: int) -> str:
        progress = (beat.last_sequence, beat.newest_dead_letter, beat.oldest_enqueued)
        still = self._ingress.seconds(depth > 0, progress, depth)
        if still > STUCK_SECONDS:
            return f"stuck: {depth} jobs wait and none was finished for {still:.0f} s"
        return OK

    def _sync_state(self, sync: SyncHealth) -> str:
        """One that was paused stands still because somebody wants it to."""
        waits = sync.lag > 0 and not sync.paused
        still = self._sync.seconds(waits, sync.sequence)
        if waits and sync.last_error:
            return f"failing: {sync.last_error}"
        if still > STUCK_SECONDS:
            return f"stuck: {sync.lag} events wait and none was taken for {still:.0f} s"
        return OK

    def _reconcile_state(self, waiting: Waiting) -> str:
        due = waiting.drift_seconds > 0
        still = self._reconcile.seconds(due, None, waiting.drifts)
        if still > STUCK_SECONDS and waiting.drift_seconds > STUCK_SECONDS:
            return f"stuck: {waiting.drifts} drifting paths wait and none was settled"
        if waiting.job_seconds > STUCK_SECONDS:
            return f"stuck: an import or audit has waited for {waiting.job_seconds:.0f} s"
        return OK


class Stillness:
    """For how long work has been waiting while nothing moved."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._progress: Any = None
        self._waiting = 0

    def seconds(self, waits: bool, progress: Any, waiting: int = 0) -> float:
        now = time.monotonic()
        moved = progress != self._progress or waiting < self._waiting
        if not waits or moved or self._since is None:
            self._since = now if waits else None
        self._progress, self._waiting = progress, waiting
        return 0.0 if self._since is None else now - self._since


def _not_watched(waiting: Waiting) -> str:
    """Without names: nobody needs a token to ask."""
    count = waiting.degraded_mounts
    mounts = "1 mount is" if count == 1 else f"{count} mounts are"
    return f"{mounts} not watched whole: {waiting.why_degraded}"


async def _depth(queue: EventQueue | None) -> int:
    return 0 if queue is None else await queue.depth()


async def _ask(question: Awaitable[Any]) -> Any:
    """The answer, or the reason why there is none."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await question
    except TimeoutError:
        return f"gave no answer within {ANSWER_SECONDS:g} s"
    except Exception as error:
        known = error if isinstance(error, TristoreError) else as_tristore_error(error)
        return str(known) or "cannot be asked; the reason is in the log"
