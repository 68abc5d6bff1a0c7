"""A worker that keeps a filestore up until its work is done, and may be killed on its way."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from tests.support.filestore import ME, SMALL_CHUNKS, own_filestore, settings_for
from tests.support.upkeep import drifting, finished, kept_up
from tests.support.waiting import until
from tests.support.warm import CONTEXT
from tristore import failpoints
from tristore.filestore import drifts, reconcile
from tristore.filestore.differences import confirm
from tristore.filestore.drifts import Detection
from tristore.filestore.store import Filestore


@dataclass(frozen=True)
class Shift:
    """What one worker does: it notices drift at these paths of a mount, settles what anybody has
    noticed, and sees a job through."""

    database_url: str
    data_dir: Path
    failpoint: str = ""
    job_id: int | None = None
    mount: str = ""
    noticed: tuple[str, ...] = ()


def killed(shift: Shift) -> bool:
    """Whether the worker died before its work was done; it must not end otherwise."""
    process = CONTEXT.Process(target=_main, args=(shift,))
    process.start()
    process.join(60)
    assert process.exitcode in (0, -9), process.exitcode
    return process.exitcode == -9


def _main(shift: Shift) -> None:
    failpoints.arm(shift.failpoint)
    # What a dead worker held is waited for; not for long here.
    drifts.LEASE_SECONDS, reconcile.RENEW_SECONDS = 1.0, 0.3
    asyncio.run(_run(shift))


async def _run(shift: Shift) -> None:
    settings = settings_for(shift.database_url, shift.data_dir, SMALL_CHUNKS)
    async with own_filestore(settings, recovering=True) as store, kept_up(store):
        if shift.noticed:
            await _notice(store, shift)
        if shift.job_id is not None:
            await finished(store, shift.job_id)
        await until(lambda: _nothing_drifts(store))


async def _notice(store: Filestore, shift: Shift) -> None:
    pool, mount = store.bench.pool, await store.mount(ME, shift.mount)
    found = await confirm(pool, await store.blobs(mount), mount.id, shift.noticed)
    assert len(found.differences) == len(shift.noticed)
    detection = Detection(mount, found.differences, "drift", "filestore.watch")
    assert await drifts.record(pool, detection) == len(shift.noticed)


async def _nothing_drifts(store: Filestore) -> bool:
    return not drifting(store)
