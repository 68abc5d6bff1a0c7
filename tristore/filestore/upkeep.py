"""Upkeep: what `tristore work reconcile` does, all of it for as long as the process lives."""

import asyncio
import logging

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient
from tristore.filestore.housekeeping import sweep
from tristore.filestore.job_runner import JobRunner
from tristore.filestore.reconcile import Reconciler
from tristore.filestore.store import Filestore

SWEEP_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Upkeep:
    """Settles drift, carries out imports and audits, schedules audits, sweeps what was left
    lying. What dead processes left half done is taken up by the filestore itself."""

    def __init__(self, filestore: Filestore) -> None:
        self._filestore = filestore

    async def run(self) -> None:
        """Until cancelled; one loop that fails ends them all, and the process with them."""
        bench = self._filestore.bench
        runner = JobRunner(bench)
        loops = (Reconciler(bench).run(), runner.run(), runner.schedule(), self._sweep())
        tasks = [asyncio.ensure_future(loop) for loop in loops]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    async def _sweep(self) -> None:
        while True:
            try:
                await obedient(sweep(self._filestore))
            except (psycopg.Error, PoolTimeout, OSError) as error:
                _log.warning("nothing was swept: %s", type(error).__name__)
            await asyncio.sleep(SWEEP_SECONDS)
