"""What a filestore event says about its nodes, as the object that their records carry."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tristore.errors import InvalidEvent, Violation
from tristore.events.log import Stored
from tristore.events.payloads import FilestoreNodeDeleted, FilestoreNodesImported
from tristore.metastore.model import RESERVED

TYPES = ("filestore.node.*", FilestoreNodesImported.TYPE)
DELETED = "deleted"
_IMPORTED_STATE = "active"
_FIELDS: dict[str, type] = {
    "nodeId": str,
    "mount": str,
    "path": str,
    "kind": str,
    "sizeBytes": int,
    "checksum": str,
    "state": str,
    "version": int,
    "journalId": int,
}
_OPTIONAL = "checksum"
_NAMES = tuple(_FIELDS)
_KINDS = tuple(_FIELDS.values())
_FITTING = {
    _KINDS,
    tuple(type(None) if n == _OPTIONAL else k for n, k in _FIELDS.items()),
}


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node after an event; `ordinal` tells apart the nodes of one event."""

    view: dict[str, Any]
    sequence: int
    ordinal: int
    event_id: str
    correlation_id: str | None

    @property
    def key(self) -> str:
        return str(self.view["nodeId"])

    @property
    def version(self) -> int:
        return int(self.view["version"])

    @property
    def deleted(self) -> bool:
        return bool(self.view["state"] == DELETED)


def read(event: Stored) -> list[NodeChange]:
    """Every node the event tells of; InvalidEvent if it is not what its schema promises."""
    views = [_view(payload) for payload in _payloads(event)]
    return [
        NodeChange(view, event.ingress_sequence, ordinal, event.id, event.correlation_id)
        for ordinal, view in enumerate(views)
    ]


def claimed_version(metadata: Mapping[str, Any]) -> int:
    """The version of the node that a record's metadata tells of; below every version if none."""
    view = metadata.get(RESERVED)
    found = view.get("version") if isinstance(view, dict) else None
    return found if type(found) is int else -1


def _payloads(event: Stored) -> list[dict[str, Any]]:
    payload = event.payload
    if event.type == FilestoreNodesImported.TYPE:
        nodes = payload.get("nodes")
        if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
            raise InvalidEvent("schema_invalid", [Violation("/payload/nodes", "is no list")])
        shared = {name: payload.get(name) for name in ("mount", "journalId")}
        return [{**shared, "state": _IMPORTED_STATE, **node} for node in nodes]
    if event.type == FilestoreNodeDeleted.TYPE:
        return [{**payload, "state": DELETED}]
    return [payload]


def _view(payload: dict[str, Any]) -> dict[str, Any]:
    values = [payload.get(name) for name in _NAMES]
    view = dict(zip(_NAMES, values, strict=True))
    if tuple(map(type, values)) not in _FITTING:
        raise InvalidEvent("schema_invalid", _violations(view))
    return view


def _violations(view: dict[str, Any]) -> list[Violation]:
    return [
        Violation(f"/payload/{name}", f"must be of type {kind.__name__}")
        for name, kind in _FIELDS.items()
        if type(view[name]) is not kind and not (name == _OPTIONAL and view[name] is None)
    ]
