"""What the metastore keeps: records and the namespaces they live in."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from tristore.events.envelope import time_text

Action = Literal["create", "update", "delete", "restore", "purge"]
Metadata = dict[str, Any]

# The metadata key that belongs to the filestore sync, in the namespace it writes to.
RESERVED = "filestore"


@dataclass(frozen=True, slots=True)
class Record:
    """One version of a record, as it is stored. `tags` are sorted and unique."""

    namespace: str
    key: str
    metadata: Metadata
    tags: tuple[str, ...]
    owner: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    created_by: str
    updated_by: str
    deleted_at: datetime | None

    @property
    def address(self) -> tuple[str, str]:
        return self.namespace, self.key

    @property
    def etag(self) -> str:
        return f'"{self.version}"'

    def at(
        self, created_at: datetime, updated_at: datetime, deleted_at: datetime | None
    ) -> "Record":
        """With the times the database gave it. Bulk calls make thousands: `replace` is slow."""
        return Record(
            *(self.namespace, self.key, self.metadata, self.tags, self.owner, self.version),
            *(created_at, updated_at, self.created_by, self.updated_by, deleted_at),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "key": self.key,
            "metadata": self.metadata,
            "tags": list(self.tags),
            "owner": self.owner,
            "version": self.version,
            "createdAt": time_text(self.created_at),
            "updatedAt": time_text(self.updated_at),
            "createdBy": self.created_by,
            "updatedBy": self.updated_by,
            "deletedAt": self.deleted_at and time_text(self.deleted_at),
        }


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change as it is wanted: the whole content a record is to have after it."""

    namespace: str
    key: str
    metadata: Metadata
    tags: tuple[str, ...]
    owner: str | None
    deleted: bool
    action: Action
    actor: str
    correlation_id: str | None
    restored_from: int | None = None

    @property
    def address(self) -> tuple[str, str]:
        return self.namespace, self.key

    def changes(self, before: Record | None) -> bool:
        """Whether storing it would change anything; what would not is never stored."""
        return (
            before is None
            or self.action == "purge"
            or self.deleted != (before.deleted_at is not None)
            or self.owner != before.owner
            or self.tags != before.tags
            or not same_json(self.metadata, before.metadata)
        )

    def applied(self, before: Record | None, at: datetime, version: int) -> Record:
        """The record it makes out of the one before."""
        deleted_at = before.deleted_at if before else None
        return Record(
            *(self.namespace, self.key, self.metadata, self.tags, self.owner, version),
            before.created_at if before else at,
            at,
            before.created_by if before else self.actor,
            self.actor,
            (deleted_at or at) if self.deleted else None,
        )


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace and its rules; None and empty mean no rule."""

    name: str
    schema: dict[str, Any] | None
    allowed_tags: tuple[str, ...] | None
    require_owner: bool
    key_pattern: str | None
    indexes: list[Any]
    text_fields: list[Any]
    version: int
    created_at: datetime
    created_by: str
    updated_at: datetime
    updated_by: str

    @property
    def etag(self) -> str:
        return f'"{self.version}"'

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "schema": self.schema,
            "allowedTags": None if self.allowed_tags is None else list(self.allowed_tags),
            "requireOwner": self.require_owner,
            "keyPattern": self.key_pattern,
            "indexes": self.indexes,
            "textFields": self.text_fields,
            "version": self.version,
            "createdAt": time_text(self.created_at),
            "createdBy": self.created_by,
            "updatedAt": time_text(self.updated_at),
            "updatedBy": self.updated_by,
        }


def same_json(one: Any, other: Any) -> bool:
    """As Postgres compares jsonb: 1 and 1.0 are the same, but True is no number as in Python."""
    if one != other:
        return False
    if isinstance(one, dict):
        return all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool)
