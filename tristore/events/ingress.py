"""The EventIngressWorker: raw jobs in, one transaction, log rows or dead letters out.

Nothing is acknowledged before that transaction has committed. Failures of infrastructure are
retried for ever and never make a dead letter; only what is wrong with an event itself does.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import NAMESPACE_URL, uuid5

import psycopg
from psycopg_pool import PoolTimeout

from tristore.db.pool import Connection, Pool
from tristore.db.wakeups import LOG
from tristore.errors import InvalidEvent, Unavailable, Violation
from tristore.events import deadletters, log, outbox, wire
from tristore.events.deadletters import DeadLetter
from tristore.events.envelope import Event, time_text
from tristore.events.queue import EventQueue, RawJob
from tristore.events.registry import Registry
from tristore.failpoints import failpoint

_log = logging.getLogger(__name__)
_RETRY_SECONDS = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """An event that passed every check and wants a place in the log."""

    event: Event
    body_hash: bytes
    incoming: wire.Incoming
    token: str


@dataclass(slots=True)
class Batch:
    """What one transaction settles."""

    candidates: list[Candidate] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    finished: list[outbox.Finished] = field(default_factory=list)

    def refuse(self, refusal: InvalidEvent, incoming: wire.Incoming, done: outbox.Finished) -> None:
        self.letters.append(DeadLetter.of(refusal, incoming.raw, incoming.value))
        self.finished.append(done)


class EventIngressWorker:
    def __init__(self, pool: Pool, registry: Registry, queue: EventQueue | None) -> None:
        self._pool = pool
        self._registry = registry
        self._queue = queue

    async def handle(self, jobs: Sequence[RawJob]) -> None:
        """Settles the jobs together. A job that was held by a worker when it died goes alone,
        so that it cannot take others along if it kills this one too."""
        calm = [job for job in jobs if not job.stalled]
        for group in [calm, *([job] for job in jobs if job.stalled)]:
            if group:
                await self._settle(self._examine(group))

    def _examine(self, jobs: Iterable[RawJob]) -> Batch:
        batch, now = Batch(), datetime.now(UTC)
        for job in jobs:
            for incoming in wire.read(job.name, job.data):
                self._examine_one(batch, job, incoming, now)
        failpoint("ingress.after_validate")
        return batch

    def _examine_one(
        self, batch: Batch, job: RawJob, incoming: wire.Incoming, now: datetime
    ) -> None:
        token = job.id.partition(".")[0]
        event: Event | None = None
        try:
            if incoming.refusal:
                raise incoming.refusal
            event = Event.parse(incoming.value, _defaults(job, incoming.index))
            checked = self._registry.check(event)
            if event.expired(now):
                raise _expired(event)
            batch.candidates.append(Candidate(checked, event.body_hash(), incoming, token))
        except InvalidEvent as refusal:
            hashed = event.body_hash() if event else None
            named = DeadLetter.of(refusal, b"", incoming.value).event_id or ""
            batch.refuse(refusal, incoming, outbox.Finished(named, hashed, token))

    async def _settle(self, batch: Batch) -> None:
        """Retries while Postgres is away; halves the batch when Postgres refuses an event."""
        for attempt in _endless():
            try:
                await self._commit(batch)
                return
            except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
                _log.warning("cannot store events yet", extra={"error": type(error).__name__})
                await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
            except psycopg.DatabaseError as error:
                for part in _halves(batch, error):
                    await self._settle(part)
                return

    async def _commit(self, batch: Batch) -> None:
        letters, finished = list(batch.letters), list(batch.finished)
        async with self._pool.connection() as conn, conn.transaction():
            stored, conflicts = await self._append(conn, batch.candidates)
            letters += [
                DeadLetter.of(_conflict(c), c.incoming.raw, c.incoming.value) for c in conflicts
            ]
            finished += [
                outbox.Finished(c.event.id, c.body_hash, c.token) for c in batch.candidates
            ]
            await deadletters.add(conn, letters)
            await outbox.finish(conn, finished)
            await conn.execute("SELECT pg_notify(%s, '')", [LOG])
            failpoint("ingress.before_commit")
        failpoint("ingress.after_commit")
        deadletters.report(letters)
        await self._announce(batch.candidates, stored)

    async def _append(
        self, conn: Connection, candidates: Sequence[Candidate]
    ) -> tuple[dict[str, int], list[Candidate]]:
        """The new sequence numbers, and the candidates whose id belongs to another body."""
        first: dict[str, Candidate] = {}
        for candidate in candidates:
            first.setdefault(candidate.event.id, candidate)
        if not first:
            return {}, []
        stored = await log.append(
            conn, [c.event for c in first.values()], [c.body_hash for c in first.values()]
        )
        hashes = {c.event.id: c.body_hash for c in first.values() if c.event.id in stored}
        if earlier := [event_id for event_id in first if event_id not in stored]:
            hashes |= await log.stored_hashes(conn, earlier)
        return stored, [c for c in candidates if hashes[c.event.id] != c.body_hash]

    async def _announce(self, candidates: Sequence[Candidate], stored: dict[str, int]) -> None:
        """Tells live listeners of what is new. They may miss it; the log does not."""
        if self._queue is None or not stored:
            return
        fresh = [c.event for c in candidates if c.event.id in stored]
        try:
            await self._queue.announce((event.type, event.dumps()) for event in fresh)
        except Unavailable as error:
            _log.warning("live channels away", extra={"error": str(error)})


def _endless() -> Iterable[int]:
    attempt = 0
    while True:
        yield attempt
        attempt += 1


def _defaults(job: RawJob, index: int) -> dict[str, str]:
    """Id and time for publishers that give none: the same whenever the job is delivered again."""
    stamp = datetime.fromtimestamp(job.timestamp_ms / 1000, UTC)
    name = f"tristore:{job.id}/{job.timestamp_ms}/{index}"
    return {"id": str(uuid5(NAMESPACE_URL, name)), "occurredAt": time_text(stamp)}


def _halves(batch: Batch, error: psycopg.DatabaseError) -> list[Batch]:
    if len(batch.candidates) <= 1:
        refused = Batch(letters=list(batch.letters), finished=list(batch.finished))
        if not batch.candidates:
            raise error
        only = batch.candidates[0]
        refusal = InvalidEvent("store_refused", [Violation("", type(error).__name__)])
        done = outbox.Finished(only.event.id, only.body_hash, only.token)
        refused.refuse(refusal, only.incoming, done)
        return [refused]
    middle = len(batch.candidates) // 2
    return [
        Batch(batch.candidates[:middle], batch.letters, batch.finished),
        Batch(batch.candidates[middle:]),
    ]


def _expired(event: Event) -> InvalidEvent:
    return InvalidEvent("expired", [Violation("/ttl", f"older than its ttl of {event.ttl} ms")])


def _conflict(candidate: Candidate) -> InvalidEvent:
    message = f"id {candidate.event.id} is taken by an event with another body"
    return InvalidEvent("id_conflict", [Violation("/id", message)])
