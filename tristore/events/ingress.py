"""The EventIngressWorker: raw jobs in, one transaction, log rows or dead letters out.

Nothing is acknowledged before that transaction has committed. Failures of infrastructure are
retried for ever and never make a dead letter; only what is wrong with an event itself does.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient
from tristore.db.pool import Connection, Pool, spendable
from tristore.errors import Unavailable
from tristore.events import deadletters, log, outbox, suspects, wire
from tristore.events.batch import Batch, Candidate
from tristore.events.examination import Examination, condemned, relay_token
from tristore.events.queue import EventQueue
from tristore.events.rawjob import RawJob
from tristore.events.registry import schema_store
from tristore.events.registry.registry import Registry
from tristore.failpoints import failpoint

_log = logging.getLogger(__name__)
_RETRY_SECONDS = (0.1, 0.25, 0.5, 1.0)
_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)


class EventIngressWorker:
    """`examine` is the processor's work, `settle` the database's; a caller may overlap them."""

    def __init__(self, pool: Pool, registry: Registry, queue: EventQueue | None) -> None:
        self._pool = pool
        self._registry = registry
        self._queue = queue
        self._suspicious = True  # whether there are suspects, as far as was asked

    async def handle(self, jobs: Sequence[RawJob]) -> None:
        await self.settle(await self.examine(jobs))

    async def examine(self, jobs: Sequence[RawJob]) -> Batch:
        """A schema that was registered before the jobs were taken holds for them. Whether there is
        one is asked afterwards; for a few events that pass it is asked by the statement that stores
        them, which saves a round trip."""
        revision = self._registry.revision
        batch = await self._examined(jobs)
        if not self._suspicious and batch.is_plain and len(batch.candidates) <= log.FEW:
            batch.revision = revision
            return batch
        await self.refresh()
        return batch if self._registry.revision == revision else await self._examined(jobs)

    async def refresh(self) -> None:
        for attempt in itertools.count():
            try:
                await obedient(self._freshen())
                return
            except _AWAY as error:
                await _pause(attempt, error)

    async def _freshen(self) -> None:
        """One cheap question, normally."""
        async with self._pool.connection() as conn:
            revision, self._suspicious = await suspects.watch(conn)
            if revision != self._registry.revision:
                await schema_store.freshen(conn, self._registry)

    async def _examined(self, jobs: Sequence[RawJob]) -> Batch:
        """Lets other tasks have their turn: one of them is storing the batch before this one."""
        examination = Examination(self._registry)
        for _ in examination.of(jobs):
            await asyncio.sleep(0)
        failpoint("ingress.after_validate")
        return examination.batch

    async def settle(self, batch: Batch) -> None:
        """Retries while Postgres is away; halves the batch when Postgres refuses an event."""
        for attempt in itertools.count():
            try:
                await obedient(self._commit(batch))
                return
            except _AWAY as error:
                await _pause(attempt, error)
            except psycopg.DatabaseError as error:
                for part in batch.halves(error):
                    await self.settle(part)
                return

    async def settle_alone(self, job: RawJob) -> None:
        """A job that was held by a worker when it died: its events one by one, each accused
        first, so that it is known which one kills if this worker dies too."""
        _log.warning("job held by a dead worker", extra={"job": job.id, "deaths": job.stalled})
        await self.refresh()
        for incoming in wire.read(job.name, job.data):
            raw_hash = suspects.hash_of(incoming.raw)
            if await self._surely(suspects.accuse, raw_hash) >= suspects.DEADLY:
                batch = condemned(job, incoming)
                await self.settle(batch)  # the accusation stands, for copies in other jobs
                continue
            examination = Examination(self._registry)
            examination.add_one(job, incoming, relay_token(job))
            await self.settle(examination.batch)
            await self._surely(suspects.acquit, raw_hash)

    async def _surely(self, ask: Callable[[Connection, bytes], Awaitable[int]], key: bytes) -> int:
        for attempt in itertools.count():
            try:
                return await obedient(self._ask(ask, key))
            except _AWAY as error:
                await _pause(attempt, error)
        raise AssertionError("unreachable")

    async def _ask(self, ask: Callable[[Connection, bytes], Awaitable[int]], key: bytes) -> int:
        async with self._pool.connection() as conn:
            return await ask(conn, key)

    async def _commit(self, batch: Batch) -> None:
        if batch.revision is not None:
            batch = await self._store_few(batch, batch.revision)
        elif self._suspicious:
            batch = await self._without_killers(batch)
        if batch:
            await self._store(batch)

    async def _store_few(self, batch: Batch, revision: int) -> Batch:
        """Stores new events in one round trip, if they were examined by the schemas that hold and
        nothing is suspected of killing. Returns what is left to do.

        What a pipeline sends without BEGIN is one transaction, committed by its end.
        """
        async with spendable(self._pool) as conn:
            async with conn.pipeline():
                append = await log.start_append(conn, *batch.rows(), revision)
                failpoint("ingress.before_commit")
            failpoint("ingress.after_commit")
            appended = await log.end_append(append)
        if appended.refused:
            return await self._examined_again(batch)
        await self._announce(batch.candidates, appended.stored)
        return Batch([c for c in batch.candidates if c.event.id not in appended.stored])

    async def _examined_again(self, batch: Batch) -> Batch:
        await self._freshen()
        examination = Examination(self._registry)
        examination.repeat(batch.candidates)
        again = examination.batch
        # After a commit whose answer was lost, an event may be in the log already: it stays there,
        # and is not refused by what was registered since.
        async with self._pool.connection() as conn:
            hashes = await log.stored_hashes(conn, [c.event.id for c in batch.candidates])
        known = {c.event.id for c in batch.candidates if hashes.get(c.event.id) == c.body_hash}
        again.letters = [letter for letter in again.letters if letter.event_id not in known]
        return await self._without_killers(again) if self._suspicious else again

    async def _store(self, batch: Batch) -> None:
        letters, finished = list(batch.letters), list(batch.finished)
        async with spendable(self._pool) as conn, conn.transaction():
            stored, conflicts = await self._append(conn, batch.candidates)
            letters += [candidate.conflict() for candidate in conflicts]
            finished += [done for c in batch.candidates for done in c.finished()]
            await deadletters.add(conn, letters)
            if finished:
                await outbox.finish(conn, finished)
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
        stored = await log.append(conn, *Batch(list(first.values())).rows())
        hashes = {c.event.id: c.body_hash for c in first.values() if c.event.id in stored}
        if earlier := [event_id for event_id in first if event_id not in stored]:
            hashes |= await log.stored_hashes(conn, earlier)
        return stored, [c for c in candidates if hashes[c.event.id] != c.body_hash]

    async def _without_killers(self, batch: Batch) -> Batch:
        hashes = [suspects.hash_of(c.incoming.raw) for c in batch.candidates]
        async with self._pool.connection() as conn:
            deadly = await suspects.deadly(conn, hashes)
        guilty = {place for place, found in enumerate(hashes) if found in deadly}
        return batch.without(guilty, suspects.verdict())

    async def _announce(self, candidates: Sequence[Candidate], stored: dict[str, int]) -> None:
        """Tells live listeners of what is new. They may miss it; the log does not."""
        if self._queue is None or not stored:
            return
        untold = dict(stored)  # the same event may stand there twice
        fresh = [c for c in candidates if untold.pop(c.event.id, None)]
        try:
            # For few it is as cheap to tell nobody as to ask whether anybody listens.
            if len(fresh) <= log.FEW or await self._queue.listened():
                await self._queue.announce([(c.event.type, c.message()) for c in fresh])
        except Unavailable as error:
            _log.warning("live channels away", extra={"error": str(error)})


async def _pause(attempt: int, error: Exception) -> None:
    _log.warning("cannot store events yet", extra={"error": type(error).__name__})
    await asyncio.sleep(_RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)])
