"""Carries out imports and audits, one at a time on a mount, and goes on with those of the dead."""

import asyncio
import logging

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient
from tristore.errors import TristoreError
from tristore.filestore import drifts, jobs, mounts
from tristore.filestore.audit import Audit, Auditing
from tristore.filestore.importing import Import, Importing
from tristore.filestore.jobs import Job
from tristore.filestore.model import Caller, Mount
from tristore.filestore.progress import Progress, TakenOver
from tristore.filestore.workbench import Workbench

AT_ONCE = 2
LOOK_SECONDS = 0.4
SCHEDULE_SECONDS = 1.0
KEEP_DAYS = 30
AWAY = (psycopg.Error, PoolTimeout, OSError)

_log = logging.getLogger(__name__)


class JobRunner:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        try:
            while True:
                try:
                    started = await obedient(self._start_one())
                except AWAY as error:
                    _log.warning("no job could be taken: %s", type(error).__name__)
                    started = False
                if not started:
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def schedule(self) -> None:
        """Queues the audits whose time has come."""
        while True:
            try:
                await obedient(self._schedule())
            except AWAY as error:
                _log.warning("no audit could be scheduled: %s", type(error).__name__)
            await asyncio.sleep(SCHEDULE_SECONDS)

    async def _schedule(self) -> None:
        async with self._bench.pool.connection() as conn:
            await jobs.schedule(conn, self._bench.settings.audit_seconds)
            await jobs.forget(conn, KEEP_DAYS)

    async def _start_one(self) -> bool:
        if len(self._running) >= AT_ONCE:
            return False
        async with self._bench.pool.connection() as conn:
            await jobs.take_from_the_dead(conn)
            job = await jobs.take(conn, self._bench.owner.id)
        if job is None:
            return False
        task = asyncio.create_task(self.carry_out(job), name=f"job-{job.id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def carry_out(self, job: Job) -> None:
        progress = Progress(self._bench.pool, job, self._bench.owner.id)
        try:
            await obedient(self._carry_out(job, progress))
            await self._finish(job, progress, None)
        except TakenOver:
            _log.info("job %s went to another worker", job.id)
        except AWAY as error:
            _log.warning("job %s waits: %s", job.id, type(error).__name__)
            await self._give_back(job)
        except TristoreError as error:
            await self._finish(job, progress, str(error))
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(job))
            raise
        except Exception:
            _log.exception("job %s failed", job.id)
            await self._finish(job, progress, "it failed inside; the log of the worker says how")

    async def _carry_out(self, job: Job, progress: Progress) -> None:
        async with self._bench.pool.connection() as conn:
            mount = await mounts.by_id(conn, job.mount_id)
        assert mount is not None
        if job.kind == "import":
            await self._import(job, mount, progress)
        else:
            await self._audit(job, mount, progress)

    async def _import(self, job: Job, mount: Mount, progress: Progress) -> None:
        bench = self._bench
        began = await drifts.now(bench.pool)
        about = Importing(
            pool=bench.pool,
            poke=bench.poke,
            blobs=await bench.blobs(mount),
            mount=mount,
            owner=bench.owner.id,
            caller=Caller(
                principal=job.principal,
                correlation_id=job.correlation_id,
                source="filestore.import",
            ),
            job_id=job.id,
            chunk_nodes=bench.settings.chunk_nodes,
            checksums=bool(job.options.get("checksums")),
        )
        await Import(about, progress).run(job.path)
        if not job.path and mount.last_audit_at is None:
            # From here on whatever is not tracked came later, and audits call it drift.
            async with bench.pool.connection() as conn:
                await drifts.audited(conn, mount, began)

    async def _audit(self, job: Job, mount: Mount, progress: Progress) -> None:
        began = await drifts.now(self._bench.pool)
        about = Auditing(
            pool=self._bench.pool,
            blobs=await self._bench.blobs(mount),
            mount=mount,
            cause="request" if job.reason == "request" else "audit",
            correlation_id=job.correlation_id,
        )
        audit = Audit(about, progress)
        await audit.run(job.path)
        await audit.settled(job.path)
        if not job.path:
            async with self._bench.pool.connection() as conn:
                await drifts.audited(conn, mount, began)

    async def _finish(self, job: Job, progress: Progress, error: str | None) -> None:
        async with self._bench.pool.connection() as conn:
            await jobs.finish(conn, job, self._bench.owner.id, progress.to_json(), error)

    async def _give_back(self, job: Job) -> None:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            async with self._bench.pool.connection() as conn:
                await jobs.give_back(conn, job, self._bench.owner.id)
        except AWAY as error:
            _log.warning("job %s waits for its lease to end: %s", job.id, type(error).__name__)
