"""delete: a file, or a directory with all that lies under it."""

from dataclasses import dataclass
from uuid import uuid4

from tristore.errors import NotFound
from tristore.failpoints import failpoint
from tristore.filestore import journal, nodes, rollups
from tristore.filestore.carry import Hands, tidy
from tristore.filestore.changes import Changes
from tristore.filestore.claims import Want
from tristore.filestore.clearing import clear
from tristore.filestore.content import Blobs
from tristore.filestore.journal import Intent
from tristore.filestore.model import Caller, Mount, Node, Outcome
from tristore.filestore.work import Work, looks, now
from tristore.filestore.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Delete:
    """Without `recursive` only a file or an empty directory."""

    mount: Mount
    path: str
    if_match: int | None = None
    recursive: bool = True

    def request_hash(self) -> bytes:
        options = [self.if_match, self.recursive]
        return journal.request_hash("delete", self.mount.name, self.path, options)


async def run(
    bench: Workbench, hands: Hands, caller: Caller, asked: Delete, background: bool
) -> Outcome:
    if known := await bench.answered(caller, asked.request_hash()):
        return known
    node = await _look(bench, asked)
    token = uuid4().hex
    intent = Intent(
        command="delete",
        mount=asked.mount,
        path=asked.path,
        caller=caller,
        owner=bench.owner.id,
        wanted=[_want(asked, node)],
        plan={"token": token},
        request_hash=asked.request_hash(),
    )
    return await hands.command(intent, carry, background=background)


async def _look(bench: Workbench, asked: Delete) -> Node:
    async with bench.pool.connection() as conn:
        node = await nodes.by_path(conn, asked.mount, asked.path)
    if node is None:
        raise NotFound(f"there is nothing at {asked.path}")
    return node


def _want(asked: Delete, node: Node) -> Want:
    whole = node.kind == "directory"
    return Want(
        asked.mount.id,
        asked.path,
        subtree=whole,
        must="exist" if asked.recursive else "empty",
        version=asked.if_match,
        kind=node.kind,
    )


async def carry(bench: Workbench, work: Work) -> Outcome:
    failpoint("filestore.delete.after_intent")
    blobs = await bench.blobs(work.mount)
    node = work.source
    if node.kind == "directory":
        outcome = await _carry_tree(bench, work, blobs)
    else:
        if node.present:
            expected = looks(node) if node.state == "active" else None
            bench.owner.check()
            await blobs.remove(work.path, work.token, expected)
        failpoint("filestore.delete.after_publish")
        outcome = await _end(bench, work, work.changes())
    failpoint("filestore.delete.after_commit")
    await tidy(blobs, work.token)
    return outcome


async def _carry_tree(bench: Workbench, work: Work, blobs: Blobs) -> Outcome:
    await bench.check(work)
    await clear(blobs, work.path, work.token)
    failpoint("filestore.delete.after_publish")
    while True:
        changes, done = await _chunk(bench, work)
        if done:
            outcome = await _end(bench, work, changes)
            await _forget(bench, changes)
            return outcome
        await bench.step(work, changes, {"nodes": work.nodes_affected + len(changes.nodes)})
        await _forget(bench, changes)
        failpoint("filestore.delete.after_chunk")


async def _chunk(bench: Workbench, work: Work) -> tuple[Changes, bool]:
    """The next nodes of the tree; they leave it as they are deleted. Its top goes last, so that
    recovery finds it where it was."""
    limit, top = bench.settings.chunk_nodes, work.source
    async with bench.pool.connection() as conn:
        found = await nodes.tree(conn, top, work.mount, "", limit)
    changes = work.changes()
    over = [*work.above(work.mount, work.path), top.id]
    for node in found:
        _bury(work, changes, node, over)
    return changes, len(found) < limit


async def _forget(bench: Workbench, changes: Changes) -> None:
    """The sums of directories that are no more; left behind they would do no harm."""
    gone = [node.id for node in changes.nodes if node.kind == "directory"]
    async with bench.pool.connection() as conn:
        await rollups.forget(conn, gone)


async def _end(bench: Workbench, work: Work, changes: Changes) -> Outcome:
    node = _bury(work, changes, work.source, work.above(work.mount, work.path))
    return await bench.settle(work, changes, node)


def _bury(work: Work, changes: Changes, node: Node, over: list[int]) -> Node:
    buried = work.next_version(node, now(), state="deleted")
    changes.delete(node, buried, over)
    changes.bytes += node.counted_bytes
    return buried
