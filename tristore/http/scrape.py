"""What Prometheus is told: this process's own counts, and what the database and the queue say."""

import asyncio
import time

from tristore.events.admin.vitals import Vitals, examine
from tristore.filestore import drifts
from tristore.filestore.drifts import Waiting
from tristore.http.meters import Meters
from tristore.http.readiness import OK, Readiness
from tristore.metrics import render
from tristore.timestore import ingest
from tristore.wiring import Platform

# Several scrapers, or an impatient one, cost one look.
CACHE_SECONDS = 2.0


class Scrape:
    def __init__(self, platform: Platform, readiness: Readiness, meters: Meters) -> None:
        self._platform = platform
        self._readiness = readiness
        self._meters = meters
        self._counted_to: int | None = None
        self._good_until = 0.0
        self._lock = asyncio.Lock()

    async def text(self) -> str:
        async with self._lock:
            if time.monotonic() > self._good_until:
                await self._look()
                self._good_until = time.monotonic() + CACHE_SECONDS
        return render(self._meters.families())

    async def _look(self) -> None:
        meters, tail = self._meters, self._platform.tail
        for part, state in self._readiness.latest().checks.items():
            meters.server.up.set(state == OK, part)
        meters.log.readers.set(tail.readers)
        meters.log.tail.set(tail.last)
        if vitals := await self._vitals():
            self._show(vitals)
        if depth := await self._depth():
            meters.delivery.depth.values = depth
        if waiting := await self._waiting():
            self._show_filestore(waiting)
        await self._show_staged()

    async def _vitals(self) -> Vitals | None:
        try:
            async with asyncio.timeout(3):
                namespace = self._platform.settings.records_of_nodes()
                return await examine(self._platform.pool, self._counted_to, namespace)
        except Exception:
            return None  # `tristore_up` says so; the rest keeps its last value

    async def _depth(self) -> dict[tuple[str, ...], float] | None:
        if self._platform.queue is None:
            return None
        try:
            async with asyncio.timeout(2):
                return {(): await self._platform.queue.depth()}
        except Exception:
            return None

    async def _waiting(self) -> Waiting | None:
        try:
            async with asyncio.timeout(2):
                return await drifts.waiting(self._platform.pool)
        except Exception:
            return None

    async def _show_staged(self) -> None:
        try:
            async with asyncio.timeout(2):
                found = await ingest.waiting(self._platform.pool)
        except Exception:
            return
        self._meters.timestore.staged.values = {}
        for dataset, batches in found.items():
            self._meters.timestore.staged.set(batches, dataset)

    def _show_filestore(self, waiting: Waiting) -> None:
        meters = self._meters
        meters.filestore.drifts.set(waiting.drifts)
        meters.filestore.degraded.set(waiting.degraded_mounts)
        meters.filestore.jobs.values = {key: count for key, (count, _) in waiting.jobs.items()}
        scanned = {"import": 0, "reconcile": 0}
        for (kind, _), (_, seen) in waiting.jobs.items():
            scanned[kind] += seen
        meters.filestore.scanned.values = {(kind,): seen for kind, seen in scanned.items()}

    def _show_backlog(self, vitals: Vitals) -> None:
        meters, states = self._meters, {"pending": 0, "enqueued": 0}
        meters.outbox.waiting.values, meters.outbox.failed.values = {}, {}
        for (state, source), (count, failed) in vitals.backlog.items():
            states[state] += count
            if state == "pending":
                meters.outbox.waiting.set(count, source)
                meters.outbox.failed.set(failed, source)
        for state, count in states.items():
            meters.outbox.backlog.set(count, state)

    def _show(self, vitals: Vitals) -> None:
        meters, pulse = self._meters, vitals.pulse
        self._counted_to = vitals.counted_to
        meters.log.last.set(pulse.last_sequence)
        meters.log.tail_lag.set(max(0, pulse.last_sequence - self._platform.tail.last))
        meters.outbox.oldest.set(pulse.pending_seconds)
        for source, count in vitals.stored.items():
            meters.log.stored.add(count, source)
        self._show_backlog(vitals)
        # What has gone must not stay on the page with its last value.
        meters.delivery.dead.values = {}
        for (reason, source), count in vitals.dead_letters.items():
            meters.delivery.dead.set(count, reason, source)
        meters.delivery.lag.values = {}
        for consumer, sequence in vitals.consumers.items():
            meters.delivery.lag.set(max(0, pulse.last_sequence - sequence), consumer)
        if vitals.sync:
            meters.sync.lag.set(vitals.sync.lag_seconds)
            meters.sync.refused.set(vitals.sync.refused)
            meters.sync.paused.set(vitals.sync.paused)
