"""The relay: moves committed outbox rows into the queue, and again if the queue loses them."""

import asyncio
import logging
from collections.abc import Iterator

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient
from tristore.config import EventsSettings
from tristore.db.pool import Pool
from tristore.db.wakeups import OUTBOX, Listener
from tristore.errors import Unavailable
from tristore.events import outbox
from tristore.events.housekeeping import Housekeeping
from tristore.events.inline import Transport
from tristore.failpoints import failpoint

_log = logging.getLogger(__name__)
_MAX_JOB_BYTES = 1024 * 1024


class Relay:
    """Any number may run; each row is claimed by one at a time."""

    def __init__(
        self, pool: Pool, transport: Transport, listener: Listener, settings: EventsSettings
    ) -> None:
        self._pool = pool
        self._transport = transport
        self._listener = listener
        self._settings = settings
        self._away_since: float | None = None

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send(), name="send")
            tasks.create_task(self._sweep(), name="lease-sweeper")
            tasks.create_task(Housekeeping(self._pool, self._settings).run(), name="housekeeping")

    async def _send(self) -> None:
        while True:
            full = await obedient(self._step())
            if not full:
                await self._listener.wait(OUTBOX, self._settings.poll_seconds)

    async def _step(self) -> bool:
        """Sends one batch; true if more may be waiting."""
        try:
            if self._away_since is not None:
                await self._transport.check()  # it may have come back as one that evicts
            sent = await self.send_batch()
            self._back()
            return sent == self._settings.relay_batch
        except (Unavailable, psycopg.OperationalError, PoolTimeout) as error:
            self._gone(error)
            await asyncio.sleep(0.25)
            return True

    async def send_batch(self) -> int:
        """Claims, commits the claim, enqueues. A crash between the last two costs one lease."""
        async with self._pool.connection() as conn:
            claim = await outbox.claim(
                conn,
                limit=self._settings.relay_batch,
                most=self._settings.relay_in_flight,
                lease_seconds=self._settings.lease_seconds,
            )
        failpoint("relay.after_claim")
        try:
            for number, job in enumerate(_jobs(claim.envelopes)):
                await self._transport.add_events(job, job_id=f"{claim.token}.{number}")
                failpoint("relay.after_add")
        except Unavailable:
            async with self._pool.connection() as conn:
                await outbox.release(conn, claim)
            raise
        return len(claim.envelopes)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._settings.lease_seconds))
            try:
                await obedient(self._take_back())
            except (psycopg.OperationalError, PoolTimeout):
                continue  # the main loop reports the outage

    async def _take_back(self) -> None:
        async with self._pool.connection() as conn:
            if lost := await outbox.expire(conn):
                _log.warning("leases ran out, sending again", extra={"rows": lost})

    def _gone(self, error: Exception) -> None:
        if self._away_since is None:
            self._away_since = asyncio.get_running_loop().time()
            _log.warning("bus away, events wait in the outbox", extra={"error": str(error)})

    def _back(self) -> None:
        if self._away_since is not None:
            seconds = asyncio.get_running_loop().time() - self._away_since
            self._away_since = None
            _log.warning("bus back, draining", extra={"away_seconds": round(seconds, 1)})


def _jobs(envelopes: list[str]) -> Iterator[list[bytes]]:
    """Events packed into jobs of bounded size, in order."""
    job: list[bytes] = []
    size = 0
    for envelope in envelopes:
        body = envelope.encode()
        if job and size + len(body) > _MAX_JOB_BYTES:
            yield job
            job, size = [], 0
        job.append(body)
        size += len(body)
    if job:
        yield job
