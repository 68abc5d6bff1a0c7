"""Suspicions: a command or a reader met content that is not as its node says."""

import logging
from collections.abc import Iterable

import psycopg
from psycopg_pool import PoolTimeout

from tristore.db.pool import Pool
from tristore.errors import TristoreError
from tristore.filestore import drifts
from tristore.filestore.content import Blobs
from tristore.filestore.differences import confirm
from tristore.filestore.drifts import Detection
from tristore.filestore.model import Caller, Mount

_log = logging.getLogger(__name__)


async def suspect(
    pool: Pool, blobs: Blobs, mount: Mount, found: Iterable[str], caller: Caller
) -> None:
    """Has the paths reconciled if they really differ. Never the reason why a command fails."""
    try:
        findings = await confirm(pool, blobs, mount.id, found)
        detection = Detection(
            mount, findings.differences, "drift", caller.source, caller.correlation_id
        )
        await drifts.record(pool, detection)
    except (TristoreError, psycopg.Error, PoolTimeout, OSError) as error:
        _log.warning("a difference on %s waits for an audit: %s", mount.name, type(error).__name__)
