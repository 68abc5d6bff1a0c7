"""Settling: what a node says after its path was looked at again, and what is told of it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tristore.filestore.changes import Changes
from tristore.filestore.content import Entry, EntryKind, Fingerprint
from tristore.filestore.drifts import Drift
from tristore.filestore.journal import Begun
from tristore.filestore.model import Mount, Node, Rollup
from tristore.filestore.seen import Seen
from tristore.filestore.settle import Settlement

AT = datetime(2026, 11, 15, tzinfo=UTC)
MOUNT = Mount(1, "m", "local", "readWrite", {}, None, None, None, AT, "me")
ROOT, FOLDER, FILE = 1, 2, 3
LOOKS = Fingerprint(5, 70, 700)
OTHER = Fingerprint(8, 71, 701)


def node(node_id: int, path: str, kind: Any, **fields: Any) -> Node:
    parent, name = (FOLDER if "/" in path else ROOT), path.rpartition("/")[2]
    given: dict[str, Any] = {"state": "active", "size_bytes": 0, "checksum": None, "version": 4}
    given |= {"metadata": {}, "inode": None, "mtime_ns": None, "etag": None, "journal_id": 9}
    given |= {"created_at": AT, "updated_at": AT}
    return Node(node_id, 1, "m", parent, path, name, kind, **(given | fields))


def known(**fields: Any) -> list[Node]:
    file = {"size_bytes": 5, "inode": 70, "mtime_ns": 700, "checksum": "sha256:a", **fields}
    return [
        node(ROOT, "", "directory"),
        node(FOLDER, "d", "directory"),
        node(FILE, "d/f", "file", **file),
    ]


def seen(path: str, kind: EntryKind | None, looks: Fingerprint = LOOKS, **fields: Any) -> Seen:
    drift = Drift(1, path, "modified", "drift", None, 1, fields.pop("told", True), AT)
    return Seen(drift, None if kind is None else Entry(path, kind, looks), **fields)


def settle(nodes: list[Node], *found: Seen) -> Changes:
    begun = Begun("begun", 20, {(1, one.path): one for one in nodes}, [101, 102, 103])
    settlement = Settlement(MOUNT, begun, "drift")
    for one in found:
        settlement.settle(one)
    return settlement.finished()


def told(changes: Changes) -> list[tuple[str, str, int]]:
    found = [(payload.TYPE, payload.to_json()) for payload in changes.payloads]
    return [
        (kind.removeprefix("filestore.node."), str(body.get("outcome", "")), body["sizeDelta"])  # type: ignore[misc]
        for kind, body in found
    ]


def test_a_file_that_cannot_be_read_is_in_doubt() -> None:
    changes = settle(known(), seen("d/f", "file", OTHER, readable=False))
    (written,) = changes.nodes
    assert (written.state, written.checksum, written.size_bytes) == ("inconsistent", None, 8)
    assert (written.version, written.journal_id) == (5, 20)
    assert told(changes) == [("reconciled", "inconsistent", 3)]
    assert changes.sums[ROOT] == changes.sums[FOLDER] == Rollup(3, 0, 0)


def test_the_same_doubt_is_told_once() -> None:
    nodes = known(state="inconsistent", checksum=None)
    assert settle(nodes, seen("d/f", "file", readable=False)).payloads == []


def test_a_file_that_can_be_read_again() -> None:
    nodes = known(state="inconsistent", checksum=None)
    changes = settle(nodes, seen("d/f", "file", checksum="sha256:a"))
    assert [n.state for n in changes.nodes] == ["active"]
    assert told(changes) == [("reconciled", "updated", 0)]


def test_a_new_file_that_cannot_be_read() -> None:
    changes = settle(known(), seen("d/g", "file", OTHER, readable=False))
    (written,) = changes.nodes
    assert (written.id, written.state, written.parent_id) == (101, "inconsistent", FOLDER)
    assert told(changes) == [("reconciled", "inconsistent", 8)]


def test_a_directory_that_cannot_be_listed_and_can_again() -> None:
    changes = settle(known(), seen("d", "directory", readable=False))
    assert told(changes) == [("reconciled", "inconsistent", 0)]
    doubtful = known()
    doubtful[1] = changes.nodes[0]
    assert told(settle(doubtful, seen("d", "directory"))) == [("reconciled", "restored", 0)]


def test_parents_are_found_with_what_lies_in_them() -> None:
    nodes = known(state="missing")
    nodes[1] = node(FOLDER, "d", "directory", state="missing")
    changes = settle(nodes, seen("d/f", "file"), seen("x/y/z", "file", OTHER))
    assert told(changes) == [
        ("reconciled", "restored", 0),
        ("reconciled", "restored", 5),
        ("reconciled", "created", 0),
        ("reconciled", "created", 0),
        ("reconciled", "created", 8),
    ]
    assert changes.sums[ROOT] == Rollup(13, 2, 3)
    assert {n.path: n.parent_id for n in changes.nodes}["x/y/z"] == 102


@pytest.mark.parametrize(("is_told", "events"), [(True, 1), (False, 0)])
def test_what_was_settled_meanwhile(is_told: bool, events: int) -> None:
    """Only what was told as drift is told to be well."""
    changes = settle(known(), seen("d/f", "file", told=is_told))
    assert changes.nodes == [] and changes.sums == {}
    assert told(changes) == [("reconciled", "unchanged", 0)] * events


def test_a_touch_makes_no_version() -> None:
    touched = Fingerprint(5, 70, 999)
    changes = settle(known(), seen("d/f", "file", touched, checksum="sha256:a"))
    (written,) = changes.nodes
    assert (written.version, written.mtime_ns) == (4, 999)
    assert told(changes) == [("reconciled", "unchanged", 0)]
