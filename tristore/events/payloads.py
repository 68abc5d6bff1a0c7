"""The payload of each event type of the catalogue, as a class that type checkers understand.

Generated from tristore/events/schemas by tools/generate_payloads.py; do not edit.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from tristore.events.payload import JsonObject, Payload

Command = Literal[
    "put",
    "createDirectory",
    "move",
    "copy",
    "delete",
    "updateMetadata",
    "import",
    "reconcile",
]
CommandStatus = Literal["completed", "failed"]
DeleteMode = Literal["soft", "purge"]
DriftReason = Literal["created", "modified", "deleted", "kindChanged", "unreadable"]
ExportFormat = Literal["parquet", "csv", "delta"]
NodeKind = Literal["file", "directory"]
NodeState = Literal["active", "inconsistent", "missing", "deleted"]
ReconcileOutcome = Literal["unchanged", "updated", "created", "restored", "inconsistent"]
ReconcileReason = Literal["drift", "audit", "request", "recovery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedNode(JsonObject):
    """One imported node."""

    node_id: str
    path: str
    kind: NodeKind
    version: int
    size_bytes: int
    checksum: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreCommandCompleted(Payload):
    """A filestore command ended, well or not."""

    TYPE: ClassVar[str] = "filestore.command.completed"
    SCHEMA_VERSION: ClassVar[int] = 1

    journal_id: int
    command: Command
    mount: str
    path: str
    status: CommandStatus
    duration_ms: int
    bytes: int
    nodes_affected: int
    idempotency_key: str | None = None
    principal: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreDriftDetected(Payload):
    """The mount and the tracked tree were seen to differ; a reconciliation settles it."""

    TYPE: ClassVar[str] = "filestore.drift.detected"
    SCHEMA_VERSION: ClassVar[int] = 1

    mount: str
    path: str
    reason: DriftReason
    journal_id: int
    node_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodeCopied(Payload):
    """A node was made as a copy of another; a recursive copy tells every node it made."""

    TYPE: ClassVar[str] = "filestore.node.copied"
    SCHEMA_VERSION: ClassVar[int] = 1

    node_id: str
    mount: str
    path: str
    kind: NodeKind
    version: int
    size_bytes: int
    size_delta: int
    state: NodeState
    journal_id: int
    command: Command
    checksum: str | None = None
    principal: str | None = None
    source_node_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodeCreated(Payload):
    """A file or directory appeared in the tracked tree through a command."""

    TYPE: ClassVar[str] = "filestore.node.created"
    SCHEMA_VERSION: ClassVar[int] = 1

    node_id: str
    mount: str
    path: str
    kind: NodeKind
    version: int
    size_bytes: int
    size_delta: int
    state: NodeState
    journal_id: int
    command: Command
    checksum: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodeDeleted(Payload):
    """A node was deleted through a command; a recursive delete tells every node under it."""

    TYPE: ClassVar[str] = "filestore.node.deleted"
    SCHEMA_VERSION: ClassVar[int] = 1

    node_id: str
    mount: str
    path: str
    kind: NodeKind
    version: int
    size_bytes: int
    size_delta: int
    state: NodeState
    journal_id: int
    command: Command
    checksum: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodeMissing(Payload):
    """A tracked node was not found on its mount.

    It comes back as reconciled when it is seen again.
    """

    TYPE: ClassVar[str] = "filestore.node.missing"
    SCHEMA_VERSION: ClassVar[int] = 1

    node_id: str
    mount: str
    path: str
    kind: NodeKind
    version: int
    state: NodeState
    outcome: Literal["missing"]
    size_bytes: int
    size_delta: int
    journal_id: int
    reason: ReconcileReason
    checksum: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodeMoved(Payload):
    """A node got another path, on its mount or on another.

    A recursive move tells every node under it.
    """

    TYPE: ClassVar[str] = "filestore.node.moved"
    SCHEMA_VERSION: ClassVar[int] = 1

    node_id: str
    mount: str
    path: str
    kind: NodeKind
    version: int
    size_bytes: int
    size_delta: int
    state: NodeState
    journal_id: int
    command: Command
    checksum: str | None = None
    principal: str | None = None
    previous_path: str | None = None
    previous_mount: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodeReconciled(Payload):
    """A node was compared with what lies on the mount, and the tree follows what was found."""

    TYPE: ClassVar[str] = "filestore.node.reconciled"
    SCHEMA_VERSION: ClassVar[int] = 1

    node_id: str
    mount: str
    path: str
    kind: NodeKind
    version: int
    state: NodeState
    outcome: ReconcileOutcome
    size_bytes: int
    size_delta: int
    journal_id: int
    reason: ReconcileReason
    checksum: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodeUpdated(Payload):
    """The content or the metadata of a node changed through a command."""

    TYPE: ClassVar[str] = "filestore.node.updated"
    SCHEMA_VERSION: ClassVar[int] = 1

    node_id: str
    mount: str
    path: str
    kind: NodeKind
    version: int
    size_bytes: int
    size_delta: int
    state: NodeState
    journal_id: int
    command: Command
    checksum: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilestoreNodesImported(Payload):
    """Files and directories that were on the mount already are now tracked.

    One import sends as many of these as it needs.
    """

    TYPE: ClassVar[str] = "filestore.nodes.imported"
    SCHEMA_VERSION: ClassVar[int] = 1

    mount: str
    journal_id: int
    size_delta: int
    nodes: tuple[ImportedNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetastoreRecordCreated(Payload):
    """A record came into being, by hand or because its file did."""

    TYPE: ClassVar[str] = "metastore.record.created"
    SCHEMA_VERSION: ClassVar[int] = 1

    namespace: str
    key: str
    version: int
    tags: tuple[str, ...]
    actor: str
    changed: tuple[str, ...]
    owner: str | None = None
    restored_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetastoreRecordDeleted(Payload):
    """A record was marked as deleted, or removed for good."""

    TYPE: ClassVar[str] = "metastore.record.deleted"
    SCHEMA_VERSION: ClassVar[int] = 1

    namespace: str
    key: str
    version: int
    tags: tuple[str, ...]
    actor: str
    changed: tuple[str, ...]
    owner: str | None = None
    mode: DeleteMode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetastoreRecordUpdated(Payload):
    """Metadata, tags or owner of a record changed."""

    TYPE: ClassVar[str] = "metastore.record.updated"
    SCHEMA_VERSION: ClassVar[int] = 1

    namespace: str
    key: str
    version: int
    tags: tuple[str, ...]
    actor: str
    changed: tuple[str, ...]
    owner: str | None = None
    restored_from: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestoreDatasetExported(Payload):
    """Rows of a dataset were written out as files at a target."""

    TYPE: ClassVar[str] = "timestore.dataset.exported"
    SCHEMA_VERSION: ClassVar[int] = 1

    dataset: str
    export_id: str
    format: ExportFormat
    target: str
    rows: int
    bytes: int
    files: int
    from_: datetime | None = None
    to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestorePartitionClosed(Payload):
    """A time partition of a dataset is complete, sorted and compacted.

    Late rows open it again and close it with the next revision.
    """

    TYPE: ClassVar[str] = "timestore.partition.closed"
    SCHEMA_VERSION: ClassVar[int] = 1

    dataset: str
    partition: str
    from_: datetime
    to: datetime
    rows: int
    bytes: int
    files: int
    table_version: int
    revision: int
