"""copy: a file, or a directory with all that lies under it, as new nodes."""

import asyncio
from dataclasses import replace

from tristore.errors import StagingLost, VersionMismatch
from tristore.failpoints import failpoint
from tristore.filestore import nodes
from tristore.filestore.carry import Hands
from tristore.filestore.changes import Changes
from tristore.filestore.claims import above
from tristore.filestore.content import Fingerprint
from tristore.filestore.filling import fill, moved_path
from tristore.filestore.model import Caller, Node, Outcome
from tristore.filestore.put import published
from tristore.filestore.staged import staged_file
from tristore.filestore.transfer import Transfer, intent, look, new_token
from tristore.filestore.work import Work, now, seen
from tristore.filestore.workbench import Workbench

_TRIES = 5


async def run(
    bench: Workbench, hands: Hands, caller: Caller, asked: Transfer, background: bool
) -> Outcome:
    asked.check()
    if known := await bench.answered(caller, asked.request_hash()):
        return known
    for _ in range(_TRIES - 1):
        try:
            return await _once(bench, hands, caller, asked, background)
        except VersionMismatch:
            # A file that changed between the look and the claim is looked at again.
            if asked.if_match is not None:
                raise
    return await _once(bench, hands, caller, asked, background)


async def _once(
    bench: Workbench, hands: Hands, caller: Caller, asked: Transfer, background: bool
) -> Outcome:
    node, token = await look(bench, asked), new_token()
    staged, checksum = None, node.checksum
    if node.kind == "file":
        staged, checksum = await staged_file(bench, caller, asked, node, token)
        failpoint("filestore.copy.after_stage")
    begun = intent(bench, caller, asked, replace(node, checksum=checksum), token)
    return await hands.command(begun, carry, background=background, staged=staged)


async def carry(bench: Workbench, work: Work) -> Outcome:
    failpoint("filestore.copy.after_intent")
    if work.source.kind == "directory":
        outcome = await _carry_tree(bench, work)
    else:
        fingerprint = await publish(bench, work)
        failpoint("filestore.copy.after_publish")
        changes, at = work.changes(), now()
        changes.bytes = fingerprint.size
        over = work.grow(changes, work.target_mount, work.target_path, at)
        fresh = work.new_node(work.target_mount, work.target_path, "file", at)
        node = replace(_copied(work.source, fresh, fingerprint), checksum=work.plan["checksum"])
        changes.copy(work.source.id, node, over)
        outcome = await bench.settle(work, changes, node)
    failpoint("filestore.copy.after_commit")
    return outcome


async def publish(bench: Workbench, work: Work) -> Fingerprint:
    blobs = await bench.blobs(work.target_mount)
    try:
        bench.owner.check()
        return await blobs.publish(work.token, work.target_path)
    except StagingLost:
        return await published(blobs, work)


def _copied(source: Node, node: Node, fingerprint: Fingerprint) -> Node:
    return replace(node, checksum=source.checksum, metadata=source.metadata, **seen(fingerprint))


async def _carry_tree(bench: Workbench, work: Work) -> Outcome:
    await fill(bench, work)
    failpoint("filestore.copy.after_publish")
    top = await _top(bench, work)
    limit = bench.settings.chunk_nodes
    after = str(work.progress.get("recorded", ""))
    while True:
        async with bench.pool.connection() as conn:
            found = await nodes.tree(conn, work.source, work.mount, after, limit)
        changes = await _chunk(bench, work, [node for node in found if node.present])
        if len(found) < limit:
            return await bench.settle(work, changes, top)
        after = found[-1].path
        await bench.step(work, changes, {**work.progress, "recorded": after})
        failpoint("filestore.copy.after_chunk")


async def _top(bench: Workbench, work: Work) -> Node:
    """The new directory itself, with those above it; the rest hangs below it."""
    if found := work.nodes.get((work.target_mount.id, work.target_path)):
        return found
    changes, at = work.changes(), now()
    over = work.grow(changes, work.target_mount, work.target_path, at)
    fresh = work.new_node(work.target_mount, work.target_path, "directory", at)
    top = replace(fresh, metadata=work.source.metadata)
    work.nodes[work.target_mount.id, work.target_path] = top
    changes.copy(work.source.id, top, over)
    await bench.step(work, changes, {**work.progress, "recorded": ""})
    return top


async def _chunk(bench: Workbench, work: Work, found: list[Node]) -> Changes:
    target, blobs = work.target_mount, await bench.blobs(work.target_mount)
    places = [moved_path(work, node.path) for node in found]
    over = dict.fromkeys(folder for path in places for folder in above(path))
    async with bench.pool.connection() as conn:
        standing = await nodes.at_paths(conn, target, over)
        work.fresh = await nodes.fresh_ids(conn, len(found))
    work.nodes |= {(target.id, path): node for path, node in standing.items()}
    entries = await asyncio.gather(*(blobs.stat(path) for path in places))
    changes, at = work.changes(), now()
    for source, path, entry in zip(found, places, entries, strict=True):
        node = work.new_node(target, path, source.kind, at)
        if entry is not None and source.kind == "file":
            node = _copied(source, node, entry.fingerprint)
        changes.copy(source.id, replace(node, metadata=source.metadata), work.above(target, path))
        changes.bytes += node.size_bytes
    return changes
