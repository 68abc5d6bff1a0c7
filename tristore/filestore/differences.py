"""How what lies on a mount differs from what is known of it, and when a difference is real."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tristore.db.pool import Pool
from tristore.events.payloads import DriftReason
from tristore.filestore import known, paths
from tristore.filestore.content import Blobs, Entry
from tristore.filestore.known import Known, Moment

# A network store answers many questions at once; a disk is asked in threads.
_LOOKS_AT_ONCE = 32


class Difference(NamedTuple):
    path: str
    reason: DriftReason
    node_id: int | None


class Findings(NamedTuple):
    """Paths that really differ, and those that somebody works on, to be looked at again."""

    differences: list[Difference]
    busy: list[str]


def difference(
    entry: Entry | None, node: Known | None, directories: bool = True
) -> DriftReason | None:
    """None: what lies there is what is known. Links and devices count as nothing.

    In a store without `directories` they are ours alone: nobody can take one away.
    """
    if node is not None and node.kind == "directory" and not directories:
        return None
    there = entry is not None and entry.kind in ("file", "directory")
    if node is None or not node.present:
        return "created" if there else None
    if not there or entry is None:
        return "deleted"
    if entry.kind != node.kind:
        return "kindChanged"
    if node.kind == "directory" or entry.fingerprint == node[4:8]:
        return None
    return "modified"


async def confirm(
    pool: Pool, blobs: Blobs, mount_id: int, suspects: Iterable[str], quiet_seconds: float = 0
) -> Findings:
    """Looks again at what seemed to differ, so that no write in flight is taken for drift.

    Claims are made before a command touches content and dropped in the commit that records it.
    So content that is looked at between two equal moments, neither of them claimed, was touched
    by no command that the later moment does not know of. Strangers make no claims: a file they
    wrote to within `quiet_seconds` is left to them for now.
    """
    asked = sorted(set(suspects))
    before = await _moments(pool, mount_id, asked)
    entries = await stat_all(blobs, [path for path in asked if not before[path].claimed])
    after = await _moments(pool, mount_id, asked)
    findings = Findings([], [])
    for path in asked:
        moment = after[path]
        if moment.claimed or moment != before[path] or _fresh(entries[path], quiet_seconds):
            findings.busy.append(path)
        elif reason := difference(entries[path], moment.node, blobs.supports_directories):
            node_id = None if moment.node is None else moment.node.id
            findings.differences.append(Difference(path, reason, node_id))
    return findings


def _fresh(entry: Entry | None, seconds: float) -> bool:
    written = None if entry is None else entry.fingerprint.mtime_ns
    return written is not None and 0 <= time.time_ns() - written < seconds * 1e9


async def _moments(pool: Pool, mount_id: int, asked: Sequence[str]) -> dict[str, Moment]:
    async with pool.connection() as conn:
        return await known.at(conn, mount_id, asked)


async def stat_all(blobs: Blobs, asked: Sequence[str]) -> dict[str, Entry | None]:
    found: dict[str, Entry | None] = {}
    for start in range(0, len(asked), _LOOKS_AT_ONCE):
        some = asked[start : start + _LOOKS_AT_ONCE]
        found |= zip(some, await asyncio.gather(*map(blobs.stat, some)), strict=True)
    return found


def topmost(differences: Iterable[Difference]) -> list[Difference]:
    """Without what lies under a directory that came or went as a whole: it is settled with it."""
    chosen: dict[str, Difference] = {}
    for one in sorted(differences):
        if not any(above in chosen for above in paths.parents(one.path)):
            chosen[one.path] = one
    return list(chosen.values())
