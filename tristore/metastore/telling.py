"""What the log is told about a change of a record."""

from tristore.events.payload import Payload
from tristore.events.payloads import (
    MetastoreRecordCreated,
    MetastoreRecordDeleted,
    MetastoreRecordUpdated,
)
from tristore.metastore.model import Metadata, Proposal, Record, same_json

# As the catalogue's schemas have it; the characters keep an event small whatever the names are.
_MAX_NAMES = 250
_MAX_NAME = 256
_MAX_CHARS = 16_000


def changed_fields(before: Record | None, after: Record) -> tuple[str, ...]:
    """`metadata.<name>`, `tags`, `owner`, `deletedAt`; `metadata` alone for too many names."""
    was_deleted = before is not None and before.deleted_at is not None
    found = _changed_metadata(before.metadata if before else {}, after.metadata)
    if after.tags != (before.tags if before else ()):
        found.append("tags")
    if after.owner != (before.owner if before else None):
        found.append("owner")
    if was_deleted != (after.deleted_at is not None):
        found.append("deletedAt")
    return tuple(found)


def _changed_metadata(before: Metadata, after: Metadata) -> list[str]:
    names = [
        f"metadata.{name}"
        for name in sorted(before.keys() | after.keys())
        if name not in before or name not in after or not same_json(before[name], after[name])
    ]
    short = all(len(name) <= _MAX_NAME for name in names)
    if len(names) > _MAX_NAMES or sum(map(len, names)) > _MAX_CHARS or not short:
        return ["metadata"]
    return names


def told(
    before: Record | None, after: Record, proposal: Proposal, changed: tuple[str, ...]
) -> Payload:
    """A record that comes back from deletion comes into being again, for whoever follows."""
    if proposal.deleted:
        return MetastoreRecordDeleted(
            namespace=after.namespace,
            key=after.key,
            version=after.version,
            tags=after.tags,
            actor=after.updated_by,
            changed=changed,
            owner=after.owner,
            mode="purge" if proposal.action == "purge" else "soft",
        )
    appears = before is None or before.deleted_at is not None
    return (MetastoreRecordCreated if appears else MetastoreRecordUpdated)(
        namespace=after.namespace,
        key=after.key,
        version=after.version,
        tags=after.tags,
        actor=after.updated_by,
        changed=changed,
        owner=after.owner,
        restored_from=proposal.restored_from,
    )
