"""How far an import or audit has come, shown in its job about once a second."""

import time
from uuid import UUID

from tristore.db.pool import Pool
from tristore.filestore import jobs
from tristore.filestore.jobs import Job
from tristore.filestore.walk import Stretch

SHOW_SECONDS = 1.0


class TakenOver(Exception):
    """Another worker has the job; this one must leave it alone."""


class Progress:
    def __init__(self, pool: Pool, job: Job, owner: UUID) -> None:
        self.scanned = self.imported = self.drifted = self.skipped = self.bytes = 0
        self._pool = pool
        self._job = job
        self._owner = owner
        self._shown = time.monotonic()

    def scan(self, stretch: Stretch) -> None:
        self.scanned += stretch.scanned
        self.skipped += stretch.skipped
        self.bytes += stretch.bytes

    def to_json(self) -> dict[str, int]:
        names = ("scanned", "imported", "drifted", "skipped", "bytes")
        return {name: getattr(self, name) for name in names}

    async def show(self) -> None:
        if time.monotonic() - self._shown < SHOW_SECONDS:
            return
        self._shown = time.monotonic()
        async with self._pool.connection() as conn:
            if not await jobs.show_progress(conn, self._job, self._owner, self.to_json()):
                raise TakenOver
