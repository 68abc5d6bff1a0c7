"""The watcher: what changes behind the filestore's back on local mounts is noticed at once."""

import asyncio
import errno
import logging
import os
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient, obey_cancellation
from tristore.config import Settings
from tristore.db.pool import Pool
from tristore.errors import TristoreError, Unavailable
from tristore.filestore import drifts, jobs, mounts
from tristore.filestore.blobs import Blobs, open_blobs
from tristore.filestore.differences import confirm, topmost
from tristore.filestore.hints import Loss, Notices
from tristore.filestore.jobs import JobReason
from tristore.filestore.model import Mount
from tristore.filestore.notices import notices

MOUNTS_SECONDS = 1.0
RETRY_SECONDS = 300.0
AWAY_SECONDS = 5.0
# A stranger who writes for longer is not waited for.
PATIENCE_SECONDS = 10.0
QUIET_SECONDS = 0.2
AGAIN_SECONDS = 0.1
SOME = 1000
# More than this is found quicker by an audit.
MOST = 200_000

WHY: dict[Loss, str] = {
    "overflow": "changes came faster than the system could queue them, and some were lost",
    "exhausted": drifts.NO_WATCHES,
    "gone": "the folder is gone or was moved away",
}
DATABASE_AWAY = (psycopg.Error, PoolTimeout)

_log = logging.getLogger(__name__)


class Watcher:
    """Watches every local mount; new ones are found by asking for them now and then."""

    def __init__(self, pool: Pool, settings: Settings) -> None:
        self._pool = pool
        self._settings = settings
        self._tasks: dict[int, asyncio.Task[None]] = {}
        # The mounts whose changes are seen from now on.
        self.watching: set[int] = set()

    async def run(self) -> None:
        try:
            while True:
                try:
                    await obedient(self._begin_new())
                except DATABASE_AWAY as error:
                    _log.warning("the mounts cannot be read: %s", type(error).__name__)
                await asyncio.sleep(MOUNTS_SECONDS)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _begin_new(self) -> None:
        async with self._pool.connection() as conn:
            found = await mounts.every(conn)
        for mount in found:
            if mount.kind == "local" and mount.id not in self._tasks:
                watch = MountWatch(self._pool, self._settings, mount, self.watching)
                self._tasks[mount.id] = asyncio.create_task(watch.run(), name=f"watch-{mount.name}")


class MountWatch:
    def __init__(self, pool: Pool, settings: Settings, mount: Mount, watching: set[int]) -> None:
        self._pool = pool
        self._settings = settings
        self._mount = mount
        # Device and inode of the folder that is watched.
        self._known: tuple[int, int] | None = None
        self._watching = watching
        # When each path was first hinted at, and when it is looked at next.
        self._waiting: dict[str, tuple[float, float]] = {}

    @property
    def _root(self) -> str:
        return str(self._mount.config["root"])

    async def run(self) -> None:
        while True:
            pause = 0.0
            try:
                async with self._opened() as (blobs, watching):
                    await self._tell_start(watching)
                    await obedient(self._follow(blobs, watching))
            except DATABASE_AWAY as error:
                obey_cancellation()
                pause = AGAIN_SECONDS * 10
                _log.warning("mount %s is not watched yet: %s", self._mount.name, error)
            except (TristoreError, OSError) as error:
                obey_cancellation()
                exhausted = isinstance(error, OSError) and error.errno == errno.ENOSPC
                pause = await self._note_loss("exhausted" if exhausted else "gone")
                _log.warning("mount %s is not watched: %s", self._mount.name, error)
            await asyncio.sleep(pause)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[Blobs, Notices]]:
        blobs = await open_blobs(self._mount, self._settings)
        try:
            # Before the watches are set: a folder that comes in between is found to be another.
            self._known = _identity(self._root)
            async with notices(self._root) as watching:
                self._watching.add(self._mount.id)
                yield blobs, watching
        finally:
            self._watching.discard(self._mount.id)
            await blobs.aclose()

    async def _follow(self, blobs: Blobs, watching: Notices) -> None:
        """Until the watch must be set anew."""
        renew = None if watching.whole else time.monotonic() + RETRY_SECONDS
        coming = asyncio.ensure_future(watching.next())
        try:
            while renew is None or time.monotonic() < renew:
                await asyncio.wait({coming}, timeout=AGAIN_SECONDS if self._waiting else 1.0)
                if coming.done():
                    hints = coming.result()
                    coming = asyncio.ensure_future(watching.next())
                    self._hint(hints.paths)
                    if hints.lost is not None:
                        await self._note_loss(hints.lost)
                    if hints.lost == "gone":
                        return
                if not await asyncio.to_thread(self._stands):
                    await self._note_loss("gone")
                    return
                try:
                    await obedient(self._look(blobs))
                except (*DATABASE_AWAY, Unavailable) as error:
                    self._put_off(error)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    def _stands(self) -> bool:
        """Whether the watched folder is still the mount's. Of one that was removed the system says
        nothing as long as a process has it open, and of one that is covered by a disk nothing ever.
        """
        try:
            return _identity(self._root) == self._known
        except OSError:
            return False

    def _hint(self, paths: Iterable[str]) -> None:
        now = time.monotonic()
        for path in paths:
            first, _ = self._waiting.get(path, (now, now))
            self._waiting[path] = (first, now)

    async def _look(self, blobs: Blobs) -> None:
        if len(self._waiting) > MOST:
            self._waiting.clear()
            await self._note_loss("overflow")
        now = time.monotonic()
        due = [path for path, (_, at) in self._waiting.items() if at <= now]
        for start in range(0, len(due), SOME):
            await self._compare(blobs, due[start : start + SOME])

    def _put_off(self, error: Exception) -> None:
        """Nothing is forgotten while the database or the mount cannot be asked."""
        _log.warning("mount %s: changes wait: %s", self._mount.name, type(error).__name__)
        later = time.monotonic() + AGAIN_SECONDS * 10
        for path, (first, at) in self._waiting.items():
            self._waiting[path] = (first, max(at, later))

    async def _compare(self, blobs: Blobs, some: list[str]) -> None:
        now = time.monotonic()
        patient = [path for path in some if now - self._waiting[path][0] < PATIENCE_SECONDS]
        for asked, quiet in ((patient, QUIET_SECONDS), (sorted({*some} - {*patient}), 0.0)):
            if asked:
                await self._confirmed(blobs, asked, quiet)

    async def _confirmed(self, blobs: Blobs, asked: list[str], quiet: float) -> None:
        findings = await confirm(self._pool, blobs, self._mount.id, asked, quiet)
        found = drifts.Detection(
            self._mount, topmost(findings.differences), cause="drift", source="filestore.watch"
        )
        await drifts.record(self._pool, found)
        kept = {path: self._waiting.pop(path) for path in asked if path in self._waiting}
        now = time.monotonic()
        for path in findings.busy:
            first, _ = kept.get(path, (now, now))
            self._waiting[path] = (first, now + AGAIN_SECONDS + (now - first) / 2)

    async def _tell_start(self, watching: Notices) -> None:
        """What happened while nobody watched is found by an audit; not on a mount that was filled
        before it was one: its files wait for an import."""
        async with self._pool.connection() as conn:
            mount = await mounts.by_id(conn, self._mount.id)
            if mount is None:
                return
            audited = mount.last_audit_at is not None
            if audited:
                await jobs.want_audit(conn, mount.id, "started")
            if watching.whole and (not audited or drifts.lasts(mount.degraded)):
                await drifts.degrade(conn, mount.id, None)

    async def _note_loss(self, loss: Loss) -> float:
        """Says how long to wait before the watch is set again."""
        reason: JobReason = "exhausted" if loss == "exhausted" else "overflow"
        # The time makes each loss another text, so an audit that began before clears nothing.
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            async with self._pool.connection() as conn:
                await drifts.degrade(conn, self._mount.id, f"{WHY[loss]} ({at})")
                if loss != "gone":
                    await jobs.want_audit(conn, self._mount.id, reason)
        except DATABASE_AWAY:
            obey_cancellation()
        return RETRY_SECONDS if loss == "exhausted" else AWAY_SECONDS


def _identity(folder: str) -> tuple[int, int]:
    found = os.stat(folder)
    return found.st_dev, found.st_ino
