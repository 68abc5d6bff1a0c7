"""The workers of the filestore, run beside a test, and what becomes of the drift they find."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.database import rows
from tests.support.filestore import ME
from tests.support.waiting import until
from tristore.config import Settings
from tristore.events import strictjson
from tristore.filestore import jobs
from tristore.filestore.jobs import Job, JobKind, JobRequest
from tristore.filestore.model import Caller, Mount
from tristore.filestore.store import Filestore
from tristore.filestore.upkeep import Upkeep
from tristore.filestore.watch import Watcher


@asynccontextmanager
async def kept_up(filestore: Filestore) -> AsyncIterator[None]:
    """As `tristore work reconcile`."""
    async with _running(Upkeep(filestore)):
        yield


@asynccontextmanager
async def watched(filestore: Filestore, settings: Settings, mount: Mount) -> AsyncIterator[None]:
    """As `tristore work watch`, from when the mount is watched on."""
    watcher = Watcher(filestore.bench.pool, settings)
    async with _running(watcher):
        await until(lambda: _is(mount.id in watcher.watching))
        yield


@asynccontextmanager
async def _running(worker: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.run())
    try:
        yield
        assert not task.done(), "the worker ended by itself"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _is(value: bool) -> bool:
    return value


async def audit(filestore: Filestore, mount: Mount, path: str = "", **caller: Any) -> Job:
    return await job(filestore, mount, JobRequest("reconcile", path), **caller)


async def imported(filestore: Filestore, mount: Mount, path: str = "", **options: Any) -> Job:
    return await job(filestore, mount, JobRequest("import", path, options))


async def job(filestore: Filestore, mount: Mount, wanted: JobRequest, **caller: Any) -> Job:
    """Asked for, and ended well by whoever works."""
    asking = Caller(principal=ME.principal, correlation_id="corr-job", **caller)
    async with filestore.bench.pool.connection() as conn:
        made = await jobs.create(conn, mount, wanted, asking)
    ended = await finished(filestore, made.id)
    assert ended.state == "completed", ended.error
    return ended


async def finished(filestore: Filestore, job_id: int) -> Job:
    async def ask() -> Job | None:
        async with filestore.bench.pool.connection() as conn:
            found = await jobs.get(conn, job_id)
        return found if found.state in ("completed", "failed") else None

    return await until(ask) or await finished(filestore, job_id)


def drifting(filestore: Filestore) -> list[str]:
    query = "SELECT path FROM filestore.drifts ORDER BY path"
    return [row["path"] for row in rows(filestore.bench.pool.conninfo, query)]


def told_of(filestore: Filestore, mount: Mount, kind: str = "filestore.") -> list[dict[str, Any]]:
    """The events of a mount, oldest first, each with its type, source and correlation id."""
    found = []
    url = filestore.bench.pool.conninfo
    for row in rows(url, "SELECT envelope FROM bus.outbox ORDER BY id"):
        event = strictjson.loads(row["envelope"].encode())
        if event["type"].startswith(kind) and event["payload"]["mount"] == mount.name:
            found.append(event)
    return found


def jobs_of(filestore: Filestore, mount: Mount, kind: JobKind) -> list[dict[str, Any]]:
    query = "SELECT * FROM filestore.jobs WHERE mount_id = %s AND kind = %s ORDER BY id"
    return rows(filestore.bench.pool.conninfo, query, mount.id, kind)
