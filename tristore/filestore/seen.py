"""What stands at a drifting path: looked at, and read where it is new, before anything is claimed.

A large file takes long to read; its path stays free for commands meanwhile.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tristore.db.pool import Pool
from tristore.errors import ContentConflict, ContentGone, ContentUnreadable
from tristore.filestore import known
from tristore.filestore.content import Blobs, Entry
from tristore.filestore.differences import difference, stat_all
from tristore.filestore.drifts import Drift
from tristore.filestore.known import Known

_READS_AT_ONCE = 4
# A file that somebody keeps writing to is recorded without a checksum in the end.
TRIES = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """`entry` is None where nothing of ours stands. A checksum of None is one not known."""

    drift: Drift
    entry: Entry | None
    checksum: str | None = None
    readable: bool = True


async def look(pool: Pool, blobs: Blobs, taken: Sequence[Drift]) -> tuple[list[Seen], list[Drift]]:
    """What was seen, and the drifts that somebody is at work on."""
    asked = {drift.path: drift for drift in taken}
    async with pool.connection() as conn:
        moments = await known.at(conn, taken[0].mount_id, list(asked))
    free = [path for path in asked if not moments[path].claimed]
    entries = await stat_all(blobs, free)
    gate = asyncio.Semaphore(_READS_AT_ONCE)

    async def one(path: str) -> Seen | None:
        async with gate:
            return await _seen(blobs, asked[path], entries[path], moments[path].node)

    found = [seen for seen in await asyncio.gather(*map(one, free)) if seen is not None]
    done = {seen.drift.path for seen in found}
    return found, [drift for path, drift in asked.items() if path not in done]


async def _seen(blobs: Blobs, drift: Drift, entry: Entry | None, node: Known | None) -> Seen | None:
    if entry is None or entry.kind not in ("file", "directory"):
        return Seen(drift, None)
    if entry.kind == "directory":
        return Seen(drift, entry, readable=await _can_be_listed(blobs, drift))
    doubtful = node is None or node.state != "active" or drift.reason == "unreadable"
    if not doubtful and not difference(entry, node):
        return Seen(drift, entry)
    if drift.attempts > TRIES and drift.reason != "unreadable":
        return Seen(drift, entry)
    try:
        checksum, fingerprint = await blobs.checksum(drift.path)
    except (ContentConflict, ContentGone):
        return None
    except ContentUnreadable:
        return Seen(drift, entry, readable=False)
    return Seen(drift, entry._replace(fingerprint=fingerprint), checksum)


async def _can_be_listed(blobs: Blobs, drift: Drift) -> bool:
    if drift.reason != "unreadable":
        return True
    try:
        async for _ in blobs.list_directory(drift.path):
            break
    except (ContentUnreadable, ContentGone):
        return False
    return True


async def unchanged(blobs: Blobs, seen: Sequence[Seen]) -> set[str]:
    """The paths that still look as they were seen."""
    entries = await stat_all(blobs, [one.drift.path for one in seen])
    return {one.drift.path for one in seen if _looks(entries[one.drift.path]) == _looks(one.entry)}


def _looks(entry: Entry | None) -> object:
    if entry is None or entry.kind not in ("file", "directory"):
        return None
    return entry.kind if entry.kind == "directory" else entry.fingerprint
