"""Filling: the content of a whole directory, copied to where the directory is to be."""

import asyncio

from tristore.errors import ContentConflict, OutcomeUnknown, TristoreError, Unavailable
from tristore.failpoints import failpoint
from tristore.filestore import nodes, paths
from tristore.filestore.clearing import clear
from tristore.filestore.content import Blobs
from tristore.filestore.model import Node
from tristore.filestore.stager import Stager
from tristore.filestore.work import Work
from tristore.filestore.workbench import Workbench

FILLED = "filled"
# Copies under way at once: a network store answers many questions at a time, a disk a few.
_AT_ONCE = 8
_AFTER_CHUNK = {"copy": "filestore.copy.after_chunk", "move": "filestore.move.after_chunk"}
_AFTER_FILE = {"copy": "filestore.copy.after_file", "move": "filestore.move.after_file"}


async def fill(bench: Workbench, work: Work) -> None:
    """All content stands at the target, or none does and an error says why. Chunk by chunk:
    recovery goes on from the last one."""
    if work.progress.get("phase") == FILLED:
        return
    stager = Stager(
        work.mount,
        await bench.blobs(work.mount),
        await bench.blobs(work.target_mount),
        work.suspects,
    )
    try:
        await _chunks(bench, work, stager)
    except (Unavailable, OutcomeUnknown):
        raise
    except TristoreError:
        await bench.check(work)
        await clear(stager.target, work.target_path, work.token)
        raise


async def _chunks(bench: Workbench, work: Work, stager: Stager) -> None:
    top, after = work.source, str(work.progress.get("after", ""))
    copied = int(work.progress.get("copied", 0))
    await stager.target.make_directory(work.target_path)
    while True:
        async with bench.pool.connection() as conn:
            found = await nodes.tree(conn, top, work.mount, after, bench.settings.chunk_nodes)
        await bench.check(work)
        await _chunk(work, stager, [node for node in found if node.present])
        copied += len(found)
        if len(found) < bench.settings.chunk_nodes:
            await bench.step(work, work.changes(), {"phase": FILLED, "copied": copied})
            return
        after = found[-1].path
        progress = {"phase": "filling", "after": after, "copied": copied}
        await bench.step(work, work.changes(), progress)
        failpoint(_AFTER_CHUNK[work.command])


async def _chunk(work: Work, stager: Stager, found: list[Node]) -> None:
    for node in found:
        if node.kind == "directory":
            await stager.target.make_directory(moved_path(work, node.path))
    files = [node for node in found if node.kind == "file"]
    for start in range(0, len(files), _AT_ONCE):
        batch = files[start : start + _AT_ONCE]
        copies = (_file(work, stager, node) for node in batch)
        # All of them end before anything is undone.
        ended = await asyncio.gather(*copies, return_exceptions=True)
        if error := next((one for one in ended if one is not None), None):
            raise error


async def _file(work: Work, stager: Stager, node: Node) -> None:
    path = moved_path(work, node.path)
    token = f"{work.token}-{node.id}"
    if work.resumed:
        if await _done(stager.target, path):
            await stager.target.confirm(path)
            return
        # What was staged may be half a file.
        await stager.target.discard(token)
    await stager.stage(node, token, path)
    try:
        await stager.target.publish(token, path)
    except ContentConflict:
        await stager.target.discard(token)
        raise
    failpoint(_AFTER_FILE[work.command])


async def _done(blobs: Blobs, path: str) -> bool:
    """What stands at a claimed path that was free is the copy made before: it came whole."""
    entry = await blobs.stat(path)
    return entry is not None and entry.kind == "file"


def moved_path(work: Work, path: str) -> str:
    return paths.rebased(path, work.path, work.target_path)
