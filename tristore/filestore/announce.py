"""The events that tell of a change to a node."""

from dataclasses import dataclass
from typing import Any

from tristore.events.payload import Payload
from tristore.events.payloads import (
    Command,
    FilestoreNodeCopied,
    FilestoreNodeCreated,
    FilestoreNodeDeleted,
    FilestoreNodeMissing,
    FilestoreNodeMoved,
    FilestoreNodeReconciled,
    FilestoreNodeUpdated,
    ReconcileOutcome,
    ReconcileReason,
)
from tristore.filestore.model import Node


@dataclass(frozen=True, slots=True)
class About:
    """The journal entry a change belongs to."""

    journal_id: int
    command: Command
    principal: str | None = None


def created(node: Node, about: About) -> Payload:
    return FilestoreNodeCreated(**_fields(node, about), size_delta=node.counted_bytes)


def updated(before: Node, node: Node, about: About) -> Payload:
    delta = node.counted_bytes - before.counted_bytes
    return FilestoreNodeUpdated(**_fields(node, about), size_delta=delta)


def deleted(before: Node, node: Node, about: About) -> Payload:
    return FilestoreNodeDeleted(**_fields(node, about), size_delta=-before.counted_bytes)


def copied(source_id: int, node: Node, about: About) -> Payload:
    fields = _fields(node, about)
    size = node.counted_bytes
    return FilestoreNodeCopied(**fields, size_delta=size, source_node_id=str(source_id))


def moved(before: Node, node: Node, about: About) -> Payload:
    """Between mounts the bytes are new to this one; readers take them off `previous_mount`."""
    left = before.mount if before.mount_id != node.mount_id else None
    delta = node.counted_bytes if left else node.counted_bytes - before.counted_bytes
    return FilestoreNodeMoved(
        **_fields(node, about),
        size_delta=delta,
        previous_path=before.path,
        previous_mount=left,
    )


def reconciled(
    before: Node | None,
    node: Node,
    journal_id: int,
    outcome: ReconcileOutcome,
    reason: ReconcileReason,
) -> Payload:
    delta = node.counted_bytes - (before.counted_bytes if before else 0)
    fields = _plain(node, journal_id)
    return FilestoreNodeReconciled(**fields, size_delta=delta, outcome=outcome, reason=reason)


def missing(before: Node, node: Node, journal_id: int, reason: ReconcileReason) -> Payload:
    return FilestoreNodeMissing(
        **_plain(node, journal_id),
        size_delta=-before.counted_bytes,
        outcome="missing",
        reason=reason,
    )


def _fields(node: Node, about: About) -> dict[str, Any]:
    plain = _plain(node, about.journal_id)
    return plain | {"command": about.command, "principal": about.principal}


def _plain(node: Node, journal_id: int) -> dict[str, Any]:
    return {
        "node_id": str(node.id),
        "mount": node.mount,
        "path": node.path,
        "kind": node.kind,
        "version": node.version,
        "size_bytes": node.size_bytes,
        "state": node.state,
        "checksum": node.checksum,
        "journal_id": journal_id,
    }
