"""put: the content of a file, new or in place of what was there."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from tristore.errors import ChecksumMismatch, StagingLost
from tristore.failpoints import failpoint
from tristore.filestore import journal, nodes, refused
from tristore.filestore.carry import Hands
from tristore.filestore.changes import Changes
from tristore.filestore.claims import Must, Want, above
from tristore.filestore.content import Blobs, Fingerprint, Staged
from tristore.filestore.journal import Intent
from tristore.filestore.model import Caller, Mount, Node, Outcome
from tristore.filestore.work import Work, looks, now, seen
from tristore.filestore.workbench import Workbench

# From this size on a condition is looked at before the content is taken in, too.
_LARGE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What is asked. `if_none_match`: only where there is nothing; `checksum` and `size`: what
    was announced; `metadata` None keeps what there is."""

    mount: Mount
    path: str
    if_match: int | None = None
    if_none_match: bool = False
    checksum: str | None = None
    size: int | None = None
    metadata: dict[str, Any] | None = None

    def want(self) -> Want:
        must: Must | None = "unused" if self.if_none_match else None
        return Want(
            self.mount.id, self.path, makes=True, must=must, version=self.if_match, kind="file"
        )

    def request_hash(self, staged: Staged) -> bytes:
        options = [self.if_match, self.if_none_match, self.metadata]
        return journal.request_hash("put", self.mount.name, self.path, staged.checksum, options)


async def run(
    bench: Workbench, hands: Hands, caller: Caller, put: Put, content: AsyncIterator[bytes]
) -> Outcome:
    blobs = await bench.blobs(put.mount)
    await _check_early(bench, caller, put)
    token = uuid4().hex
    staged = await blobs.stage(token, content, put.path)
    failpoint("filestore.put.after_stage")
    try:
        _check_content(put, staged)
    except ChecksumMismatch:
        await blobs.discard(token)
        raise
    return await hands.command(_intent(bench, caller, put, staged), carry, staged=blobs)


async def _check_early(bench: Workbench, caller: Caller, put: Put) -> None:
    """Spares the sender of a large file an upload that would be refused at its end. Not for one
    that comes again with its Idempotency-Key: it would meet what it did itself."""
    if (put.size is not None and put.size < _LARGE) or await bench.knows(caller):
        return
    asked = [put.path, *above(put.path)]
    async with bench.pool.connection() as conn:
        found = await nodes.at_paths(conn, put.mount, asked)
    want = put.want()
    if why := refused.why(want, {(node.mount_id, node.path): node for node in found.values()}):
        raise why


def _check_content(put: Put, staged: Staged) -> None:
    if put.size is not None and put.size != staged.size:
        raise ChecksumMismatch(
            f"{staged.size} bytes arrived where {put.size} were announced; nothing was changed"
        )
    if put.checksum is not None and put.checksum != staged.checksum:
        raise ChecksumMismatch(
            f"the content has {staged.checksum}, not {put.checksum}; nothing was changed"
        )


def _intent(bench: Workbench, caller: Caller, put: Put, staged: Staged) -> Intent:
    plan = {"token": staged.token, "size": staged.size, "checksum": staged.checksum}
    if put.metadata is not None:
        plan["metadata"] = put.metadata
    keyed = caller.idempotency_key is not None
    return Intent(
        command="put",
        mount=put.mount,
        path=put.path,
        caller=caller,
        owner=bench.owner.id,
        wanted=[put.want()],
        plan=plan,
        request_hash=put.request_hash(staged) if keyed else None,
    )


async def carry(bench: Workbench, work: Work) -> Outcome:
    failpoint("filestore.put.after_intent")
    blobs = await bench.blobs(work.mount)
    fingerprint = await _publish(bench, blobs, work)
    failpoint("filestore.put.after_publish")
    changes = work.changes()
    changes.bytes = fingerprint.size
    node = _write(work, changes, fingerprint)
    outcome = await bench.settle(work, changes, node)
    failpoint("filestore.put.after_commit")
    return outcome


async def _publish(bench: Workbench, blobs: Blobs, work: Work) -> Fingerprint:
    replaces = await _replaced(blobs, work)
    try:
        bench.owner.check()
        return await blobs.publish(work.token, work.path, replaces=replaces)
    except StagingLost:
        # Published before a crash, or gone for good: the path itself must say.
        return await published(blobs, work)


async def published(blobs: Blobs, work: Work) -> Fingerprint:
    entry = await blobs.stat(work.target_path)
    if entry is None or entry.kind != "file" or entry.fingerprint.size != work.plan["size"]:
        raise StagingLost("the content was lost before it was in place; send it again")
    checksum, fingerprint = await blobs.checksum(work.target_path)
    if checksum != (work.plan["checksum"] or checksum):
        raise StagingLost("the content was lost before it was in place; send it again")
    await blobs.confirm(work.target_path)
    return fingerprint


async def _replaced(blobs: Blobs, work: Work) -> Fingerprint | None:
    node = work.node
    if node is None or not node.present:
        return None
    if node.state == "inconsistent":
        entry = await blobs.stat(work.path)
        return None if entry is None else entry.fingerprint
    return looks(node)


def _write(work: Work, changes: Changes, fingerprint: Fingerprint) -> Node:
    at = now()
    over = work.grow(changes, work.mount, work.path, at)
    before = work.node
    fields = {"checksum": work.plan["checksum"], **seen(fingerprint)}
    if "metadata" in work.plan:
        fields["metadata"] = work.plan["metadata"]
    if before is None:
        fresh = work.new_node(work.mount, work.path, "file", at)
        node = replace(fresh, **fields)
        changes.create(node, over)
    else:
        node = work.next_version(before, at, state="active", **fields)
        changes.update(before, node, over)
    return node
