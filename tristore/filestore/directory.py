"""createDirectory: a directory and those above it."""

from uuid import uuid4

from tristore.failpoints import failpoint
from tristore.filestore import journal
from tristore.filestore.carry import Hands
from tristore.filestore.claims import Want
from tristore.filestore.journal import Intent
from tristore.filestore.model import Caller, Mount, Outcome
from tristore.filestore.work import Work, now
from tristore.filestore.workbench import Workbench


def want(mount: Mount, path: str, if_match: int | None = None) -> Want:
    return Want(mount.id, path, makes=True, must="unused", version=if_match, kind="directory")


async def run(bench: Workbench, hands: Hands, caller: Caller, mount: Mount, want: Want) -> Outcome:
    token, keyed = uuid4().hex, caller.idempotency_key is not None
    asked = journal.request_hash("createDirectory", mount.name, want.path, want.version)
    intent = Intent(
        command="createDirectory",
        mount=mount,
        path=want.path,
        caller=caller,
        owner=bench.owner.id,
        wanted=[want],
        plan={"token": token},
        request_hash=asked if keyed else None,
    )
    return await hands.command(intent, carry)


async def carry(bench: Workbench, work: Work) -> Outcome:
    failpoint("filestore.directory.after_intent")
    blobs = await bench.blobs(work.mount)
    bench.owner.check()
    await blobs.make_directory(work.path)
    failpoint("filestore.directory.after_publish")
    changes, at = work.changes(), now()
    over = work.grow(changes, work.mount, work.path, at)
    before = work.node
    if before is None:
        node = work.new_node(work.mount, work.path, "directory", at)
        changes.create(node, over)
    else:
        node = work.next_version(before, at, state="active")
        changes.update(before, node, over)
    outcome = await bench.settle(work, changes, node)
    failpoint("filestore.directory.after_commit")
    return outcome
