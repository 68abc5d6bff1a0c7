"""Housekeeping: sweeps what commands and dead processes left lying about."""

import logging

from tristore.errors import TristoreError
from tristore.filestore import owners
from tristore.filestore.model import OBSERVE
from tristore.filestore.store import Filestore

_log = logging.getLogger(__name__)


async def sweep(filestore: Filestore) -> int:
    """Old staging and trash of every mount, and owners long gone; says how many were swept.

    What an open entry still needs stays, however old it is.
    """
    bench = filestore.bench
    async with bench.pool.connection() as conn:
        kept = {claim.token for claim in await owners.open_claims(conn, bench.owner) if claim.token}
        swept = await owners.sweep(conn)
    keep = kept | bench.owner.in_hand
    for mount in await bench.opened.refresh():
        if mount.access == OBSERVE:
            continue
        try:
            blobs = await bench.blobs(mount)
            swept += await blobs.sweep(bench.settings.staging_keep_seconds, keep)
        except (TristoreError, OSError) as error:
            _log.warning("mount %s was not swept: %s", mount.name, type(error).__name__)
    return swept
