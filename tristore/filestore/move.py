"""move: a node, with all that lies under it, to another path of its mount or of another."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tristore.errors import ContentGone
from tristore.failpoints import failpoint
from tristore.filestore import announce, nodes, paths, rollups
from tristore.filestore.carry import Hands, tidy
from tristore.filestore.changes import Changes, weight
from tristore.filestore.clearing import clear
from tristore.filestore.content import Blobs, Entry, Fingerprint
from tristore.filestore.copy import publish
from tristore.filestore.filling import fill, moved_path
from tristore.filestore.model import Caller, Node, Outcome
from tristore.filestore.staged import staged_file
from tristore.filestore.stager import check_looks
from tristore.filestore.transfer import Transfer, intent, look, new_token
from tristore.filestore.work import Work, looks, now, seen
from tristore.filestore.workbench import Workbench


async def run(
    bench: Workbench, hands: Hands, caller: Caller, asked: Transfer, background: bool
) -> Outcome:
    asked.check()
    if known := await bench.answered(caller, asked.request_hash()):
        return known
    node, token = await look(bench, asked), new_token()
    staged, checksum = None, node.checksum
    if asked.between_mounts and node.kind == "file":
        staged, checksum = await staged_file(bench, caller, asked, node, token)
        failpoint("filestore.move.after_stage")
    begun = intent(bench, caller, asked, replace(node, checksum=checksum), token)
    return await hands.command(begun, carry, background=background, staged=staged)


async def carry(bench: Workbench, work: Work) -> Outcome:
    failpoint("filestore.move.after_intent")
    if work.source.kind == "directory":
        outcome = await _carry_tree(bench, work)
    else:
        fingerprint = await _move_file(bench, work)
        failpoint("filestore.move.after_publish")
        outcome = await _end(bench, work, work.changes(), fingerprint)
    failpoint("filestore.move.after_commit")
    await tidy(await bench.blobs(work.mount), work.token)
    return outcome


async def _move_file(bench: Workbench, work: Work) -> Fingerprint:
    source, target = await bench.blobs(work.mount), await bench.blobs(work.target_mount)
    if source is target:
        return await _rename(bench, source, work)
    fingerprint = await publish(bench, work)
    failpoint("filestore.move.after_copy")
    bench.owner.check()
    await source.remove(work.path, work.token, looks(work.source))
    return fingerprint


async def _rename(bench: Workbench, blobs: Blobs, work: Work) -> Fingerprint:
    """One step, or none where it was done before."""
    entry = await blobs.stat(work.path)
    if entry is not None:
        check_looks(work.source, entry.fingerprint)
        await bench.check(work)
        return await blobs.move(work.path, work.target_path)
    moved = await blobs.stat(work.target_path) if work.resumed else None
    if moved is None:
        raise ContentGone(f"the content of {work.path} is gone from its mount")
    await blobs.confirm(work.target_path)
    await blobs.confirm(work.path)
    return moved.fingerprint


async def _carry_tree(bench: Workbench, work: Work) -> Outcome:
    source, target = await bench.blobs(work.mount), await bench.blobs(work.target_mount)
    whole = source is target and source.supports_directories
    if whole:
        await _rename(bench, source, work)
    else:
        await fill(bench, work)
        failpoint("filestore.move.after_copy")
        await bench.check(work)
        await clear(source, work.path, work.token)
    failpoint("filestore.move.after_publish")
    limit = bench.settings.chunk_nodes
    while True:
        async with bench.pool.connection() as conn:
            found = await nodes.tree(conn, work.source, work.mount, "", limit)
        changes = await _chunk(work, found, None if whole else target)
        if len(found) < limit:
            return await _end(bench, work, changes, None)
        progress = work.progress | {"nodes": work.nodes_affected + len(changes.nodes)}
        await bench.step(work, changes, progress)
        failpoint("filestore.move.after_chunk")


async def _chunk(work: Work, found: Sequence[Node], copies: Blobs | None) -> Changes:
    """The next nodes of the tree; they leave it as they move. Its top goes last, with the sums,
    so that recovery finds it where it was."""
    places = [moved_path(work, node.path) for node in found]
    looked: list[Entry | None] = [None] * len(found)
    if copies is not None:
        looked = await asyncio.gather(*(copies.stat(path) for path in places))
    changes, at = work.changes(), now()
    for node, path, entry in zip(found, places, looked, strict=True):
        fields = _place(work, path)
        if entry is not None and node.kind == "file":
            fields |= seen(entry.fingerprint)
        after = work.next_version(node, at, **fields)
        changes.write(after)
        changes.tell(announce.moved(node, after, changes.about))
        changes.bytes += node.counted_bytes
    return changes


async def _end(
    bench: Workbench, work: Work, changes: Changes, fingerprint: Fingerprint | None
) -> Outcome:
    before, at = work.source, now()
    async with bench.pool.connection() as conn:
        under = (await rollups.of(conn, [before.id]))[before.id]
    total = under + weight(before)
    changes.count(work.above(work.mount, work.path), -total)
    over = work.grow(changes, work.target_mount, work.target_path, at)
    changes.count(over, total)
    fields = _place(work, work.target_path) | {"parent_id": over[-1]}
    if fingerprint is not None:
        fields |= {"checksum": work.plan["checksum"], **seen(fingerprint)}
    node = work.next_version(before, at, **fields)
    changes.write(node)
    changes.tell(announce.moved(before, node, changes.about))
    changes.bytes += before.counted_bytes
    return await bench.settle(work, changes, node)


def _place(work: Work, path: str) -> dict[str, Any]:
    mount = work.target_mount
    return {"mount_id": mount.id, "mount": mount.name, "path": path, "name": paths.name(path)}
