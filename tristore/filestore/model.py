"""What the filestore speaks of: mounts, nodes, their sums, who asks, and what came of it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from tristore.events.payloads import NodeKind, NodeState

MountKind = Literal["local", "s3"]
Access = Literal["readWrite", "observe"]

READ_WRITE: Access = "readWrite"
OBSERVE: Access = "observe"
# The states in which a node's content counts as lying on the mount.
PRESENT: frozenset[NodeState] = frozenset({"active", "inconsistent"})


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or a bucket. `config` names credentials, it never holds them."""

    id: int
    name: str
    kind: MountKind
    access: Access
    config: dict[str, Any]
    audit_seconds: int | None
    last_audit_at: datetime | None
    degraded: str | None
    created_at: datetime
    created_by: str

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "access": self.access,
            **self.config,
            "auditSeconds": self.audit_seconds,
            "lastAuditAt": time_text(self.last_audit_at),
            "degraded": self.degraded,
            "createdAt": time_text(self.created_at),
            "createdBy": self.created_by,
        }


@dataclass(frozen=True, slots=True)
class Rollup:
    """What lies under a directory: bytes, files and directories, itself not counted."""

    size_bytes: int = 0
    files: int = 0
    directories: int = 0

    def __add__(self, more: "Rollup") -> "Rollup":
        return Rollup(
            self.size_bytes + more.size_bytes,
            self.files + more.files,
            self.directories + more.directories,
        )

    def __neg__(self) -> "Rollup":
        return Rollup(-self.size_bytes, -self.files, -self.directories)

    def to_json(self) -> dict[str, int]:
        return {
            "sizeBytes": self.size_bytes,
            "files": self.files,
            "directories": self.directories,
        }


@dataclass(frozen=True, slots=True)
class Node:
    """A file or directory of a mount as the filestore knows it.

    `inode`, `mtime_ns` and `etag` say how the content looked when it was last taken for true.
    """

    id: int
    mount_id: int
    mount: str
    parent_id: int | None
    path: str
    name: str
    kind: NodeKind
    state: NodeState
    size_bytes: int
    checksum: str | None
    version: int
    metadata: dict[str, Any]
    inode: int | None
    mtime_ns: int | None
    etag: str | None
    journal_id: int
    created_at: datetime
    updated_at: datetime

    @property
    def present(self) -> bool:
        return self.state in PRESENT

    @property
    def counted_bytes(self) -> int:
        """What the node adds to the bytes of its mount."""
        return self.size_bytes if self.present else 0

    def to_json(self, rollup: Rollup | None = None) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": str(self.id),
            "mount": self.mount,
            "path": self.path,
            "kind": self.kind,
            "state": self.state,
            "sizeBytes": self.size_bytes,
            "checksum": self.checksum,
            "version": self.version,
            "metadata": self.metadata,
            "journalId": self.journal_id,
            "createdAt": time_text(self.created_at),
            "updatedAt": time_text(self.updated_at),
        }
        return shown if rollup is None else shown | {"rollup": rollup.to_json()}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A node as one of its versions left it."""

    node_id: int
    version: int
    mount: str
    path: str
    state: NodeState
    size_bytes: int
    checksum: str | None
    metadata: dict[str, Any]
    journal_id: int
    principal: str | None
    at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "nodeId": str(self.node_id),
            "version": self.version,
            "mount": self.mount,
            "path": self.path,
            "state": self.state,
            "sizeBytes": self.size_bytes,
            "checksum": self.checksum,
            "metadata": self.metadata,
            "journalId": self.journal_id,
            "principal": self.principal,
            "at": time_text(self.at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. `mounts` is the token's allow-list; None means every mount.

    `source` is the source of the events the command causes.
    """

    principal: str | None = None
    token_id: UUID | str | None = None
    correlation_id: str | None = None
    source: str = "filestore.api"
    idempotency_key: str | None = None
    mounts: list[str] | None = None

    def sees(self, mount: str) -> bool:
        return self.mounts is None or mount in self.mounts


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command answers. A command that goes on in the background has no node yet to show
    but the one it began with, and `under_way` is true until its journal entry is finished."""

    node: Node
    journal_id: int
    replayed: bool = False
    under_way: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"node": self.node.to_json(), "journalId": self.journal_id}


@dataclass(frozen=True, slots=True)
class Entry:
    """A journal entry as readers see it; `progress` moves while a recursive command works."""

    id: int
    command: str
    state: Literal["applying", "completed", "failed"]
    mount: str
    path: str
    target_mount: str | None
    target_path: str | None
    node_id: int | None
    error: str | None
    principal: str | None
    idempotency_key: str | None
    correlation_id: str | None
    bytes: int
    nodes_affected: int
    started_at: datetime
    completed_at: datetime | None
    progress: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "command": self.command,
            "state": self.state,
            "mount": self.mount,
            "path": self.path,
            "targetMount": self.target_mount,
            "targetPath": self.target_path,
            "nodeId": None if self.node_id is None else str(self.node_id),
            "error": self.error,
            "principal": self.principal,
            "idempotencyKey": self.idempotency_key,
            "correlationId": self.correlation_id,
            "bytes": self.bytes,
            "nodesAffected": self.nodes_affected,
            "progress": self.progress,
            "startedAt": time_text(self.started_at),
            "completedAt": time_text(self.completed_at),
        }


def time_text(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
