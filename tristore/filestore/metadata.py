"""updateMetadata: a merge patch (RFC 7396) on what people keep about a node."""

from typing import Any
from uuid import uuid4

import orjson

from tristore.errors import InvalidRequest
from tristore.failpoints import failpoint
from tristore.filestore import journal
from tristore.filestore.carry import Hands
from tristore.filestore.claims import Want
from tristore.filestore.journal import Intent
from tristore.filestore.model import Caller, Mount, Outcome
from tristore.filestore.work import Work, now
from tristore.filestore.workbench import Workbench
from tristore.merge_patch import merged

MAX_BYTES = 64 * 1024


def check(given: dict[str, Any]) -> dict[str, Any]:
    """What the database can keep: no NUL, no number beyond 64 bits, not too large."""
    try:
        text = orjson.dumps(given)
    except (TypeError, ValueError):
        raise InvalidRequest("metadata is a JSON object, with text in valid Unicode") from None
    if b"\\u0000" in text:
        raise InvalidRequest("metadata cannot hold NUL characters")
    if len(text) > MAX_BYTES:
        raise InvalidRequest(f"metadata has {len(text)} bytes; the most is {MAX_BYTES}")
    return given


async def run(
    bench: Workbench, hands: Hands, caller: Caller, want: Want, mount: Mount, patch: dict[str, Any]
) -> Outcome:
    token = uuid4().hex
    options = [want.version, check(patch)]
    intent = Intent(
        command="updateMetadata",
        mount=mount,
        path=want.path,
        caller=caller,
        owner=bench.owner.id,
        wanted=[want],
        plan={"token": token, "patch": patch},
        request_hash=journal.request_hash("updateMetadata", mount.name, want.path, options),
    )
    return await hands.command(intent, carry)


async def carry(bench: Workbench, work: Work) -> Outcome:
    failpoint("filestore.metadata.after_intent")
    before = work.source
    kept = check(merged(before.metadata, work.plan["patch"]))
    node = work.next_version(before, now(), metadata=kept)
    changes = work.changes()
    changes.update(before, node, work.above(work.mount, work.path))
    outcome = await bench.settle(work, changes, node)
    failpoint("filestore.metadata.after_commit")
    return outcome
