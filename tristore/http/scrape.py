"""What Prometheus is told: this process's own counts, and what the database and the queue say."""

import asyncio
import time

from tristore.events.admin.vitals import Vitals, examine
from tristore.filestore import drifts
from tristore.filestore.drifts import Waiting
from tristore.http.readiness import OK, Readiness
from tristore.metrics import Counter, Family, Gauge, Histogram, render
from tristore.timestore import ingest
from tristore.wiring import Platform

# Several scrapers, or an impatient one, cost one look.
CACHE_SECONDS = 2.0


class Meters:
    """Every metric there is, by name."""

    def __init__(self) -> None:
        call = ("method", "route")
        self.requests = Counter(
            "tristore_http_requests_total", "Requests answered.", (*call, "status")
        )
        self.seconds = Histogram(
            "tristore_http_request_seconds", "Time until an answer began.", call
        )
        self.up = Gauge("tristore_up", "1 if the server or worker is well.", ("part",))
        self.readers = Gauge("tristore_live_readers", "Live streams open in this process.")
        self.tail = Gauge("tristore_tail_sequence", "How far this process has read the log.")
        self.tail_lag = Gauge("tristore_tail_lag_events", "Events the tail has still to read.")
        self.last = Gauge("tristore_log_last_sequence", "Sequence number of the newest event.")
        self.stored = Counter(
            "tristore_events_stored_total",
            "Events stored since this process was first asked.",
            ("source",),
        )
        self.backlog = Gauge(
            "tristore_outbox_events", "Events in the outbox that are not stored yet.", ("state",)
        )
        self.waiting = Gauge(
            "tristore_outbox_waiting_events",
            "Events of a source that wait to be sent.",
            ("source",),
        )
        self.failed = Gauge(
            "tristore_outbox_failed_sends",
            "Sends that failed, of events that still wait.",
            ("source",),
        )
        self.oldest = Gauge(
            "tristore_outbox_oldest_seconds", "Age of the oldest event that waits to be sent."
        )
        self.depth = Gauge("tristore_queue_jobs", "Jobs that wait in the queue or are worked on.")
        self.dead = Gauge(
            "tristore_dead_letters", "Dead letters nobody has settled.", ("reason", "source")
        )
        self.lag = Gauge(
            "tristore_consumer_lag_events", "Events a consumer has still to read.", ("consumer",)
        )
        self.sync_lag = Gauge(
            "tristore_sync_lag_seconds", "Age of the oldest event the filestore sync has to read."
        )
        self.sync_refused = Gauge(
            "tristore_sync_refused", "Nodes whose record breaks the rules of its namespace."
        )
        self.sync_paused = Gauge("tristore_sync_paused", "1 while the filestore sync is paused.")
        self.drifts = Gauge(
            "tristore_filestore_drifts", "Paths seen to differ from their nodes, not yet settled."
        )
        self.degraded = Gauge(
            "tristore_filestore_degraded_mounts", "Mounts that are not watched whole."
        )
        self.jobs = Gauge(
            "tristore_filestore_jobs", "Imports and audits of the last 30 days.", ("kind", "state")
        )
        self.scanned = Gauge(
            "tristore_filestore_scanned_files", "What they have looked at so far.", ("kind",)
        )
        self.staged = Gauge(
            "tristore_ingest_waiting_batches",
            "Staged batches that are not in their table yet.",
            ("dataset",),
        )

    def families(self) -> list[Family]:
        return [found for found in vars(self).values() if isinstance(found, Family)]


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
            meters.up.set(state == OK, part)
        meters.readers.set(tail.readers)
        meters.tail.set(tail.last)
        if vitals := await self._vitals():
            self._show(vitals)
        if depth := await self._depth():
            meters.depth.values = depth
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
        self._meters.staged.values = {}
        for dataset, batches in found.items():
            self._meters.staged.set(batches, dataset)

    def _show_filestore(self, waiting: Waiting) -> None:
        meters = self._meters
        meters.drifts.set(waiting.drifts)
        meters.degraded.set(waiting.degraded_mounts)
        meters.jobs.values = {key: count for key, (count, _) in waiting.jobs.items()}
        scanned = {"import": 0, "reconcile": 0}
        for (kind, _), (_, seen) in waiting.jobs.items():
            scanned[kind] += seen
        meters.scanned.values = {(kind,): seen for kind, seen in scanned.items()}

    def _show_backlog(self, vitals: Vitals) -> None:
        meters, states = self._meters, {"pending": 0, "enqueued": 0}
        meters.waiting.values, meters.failed.values = {}, {}
        for (state, source), (count, failed) in vitals.backlog.items():
            states[state] += count
            if state == "pending":
                meters.waiting.set(count, source)
                meters.failed.set(failed, source)
        for state, count in states.items():
            meters.backlog.set(count, state)

    def _show(self, vitals: Vitals) -> None:
        meters, pulse = self._meters, vitals.pulse
        self._counted_to = vitals.counted_to
        meters.last.set(pulse.last_sequence)
        meters.tail_lag.set(max(0, pulse.last_sequence - self._platform.tail.last))
        meters.oldest.set(pulse.pending_seconds)
        for source, count in vitals.stored.items():
            meters.stored.add(count, source)
        self._show_backlog(vitals)
        # What has gone must not stay on the page with its last value.
        meters.dead.values = {}
        for (reason, source), count in vitals.dead_letters.items():
            meters.dead.set(count, reason, source)
        meters.lag.values = {}
        for consumer, sequence in vitals.consumers.items():
            meters.lag.set(max(0, pulse.last_sequence - sequence), consumer)
        if vitals.sync:
            meters.sync_lag.set(vitals.sync.lag_seconds)
            meters.sync_refused.set(vitals.sync.refused)
            meters.sync_paused.set(vitals.sync.paused)
