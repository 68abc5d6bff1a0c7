"""Settling: the changes that make nodes say again what was seen at their paths."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tristore.events.payloads import NodeKind, ReconcileOutcome, ReconcileReason
from tristore.filestore import announce, paths
from tristore.filestore.announce import About
from tristore.filestore.changes import Changes
from tristore.filestore.content import Entry
from tristore.filestore.journal import Begun
from tristore.filestore.model import Mount, Node
from tristore.filestore.seen import Seen
from tristore.filestore.work import looks, unwritten
from tristore.filestore.work import seen as looking


class Settlement:
    """What one journal entry records of what was seen. `spare` are more ids for new nodes, for
    paths at which something stands that must first make room."""

    def __init__(
        self, mount: Mount, begun: Begun, cause: ReconcileReason, spare: Iterable[int] = ()
    ) -> None:
        self.changes = Changes(About(begun.journal_id, "reconcile"))
        self._mount = mount
        self._journal_id = begun.journal_id
        self._cause: ReconcileReason = cause
        self._nodes = {path: node for (_, path), node in begun.nodes.items()}
        self._fresh: Iterator[int] = iter([*begun.fresh, *spare])
        self._at = datetime.now(UTC)

    def finished(self) -> Changes:
        # A directory may be found again for what lies in it after it was taken for lost.
        last = {node.id: node for node in self.changes.nodes}
        self.changes.nodes = list(last.values())
        return self.changes

    def settle(self, seen: Seen) -> None:
        path, entry = seen.drift.path, seen.entry
        node = self._nodes.get(path)
        if entry is None:
            if node is not None and node.present:
                self._miss(node)
        elif node is None:
            self._create(seen, entry)
        elif entry.kind != node.kind:
            self._bury(node)
            self._create(seen, entry)
        elif entry.kind == "directory":
            self._settle_directory(seen, node)
        else:
            self._settle_file(seen, entry, node)

    def _settle_file(self, seen: Seen, entry: Entry, node: Node) -> None:
        if not seen.readable:
            self._doubt(node, entry)
        elif node.state == "missing":
            self._change(node, self._as_seen(node, seen, entry), "restored")
        elif _rotten(seen, entry, node):
            if node.state != "inconsistent":
                # Its checksum stays: only what has it may be read as this file again.
                self._change(node, self._next(node, state="inconsistent"), "inconsistent")
        elif entry.fingerprint == looks(node) and node.state == "active":
            self._tell(seen, node)
        elif seen.checksum is not None and seen.checksum == node.checksum:
            # Only touched: nothing a reader could see has changed.
            same = replace(node, state="active", **looking(entry.fingerprint))
            self._change(node, same, "unchanged")
        else:
            self._change(node, self._as_seen(node, seen, entry), "updated")

    def _settle_directory(self, seen: Seen, node: Node) -> None:
        if not seen.readable:
            if node.state != "inconsistent":
                self._change(node, self._next(node, state="inconsistent"), "inconsistent")
        elif node.state == "missing":
            self._restore(node, self._found_above(node.path))
        elif node.state == "inconsistent":
            self._change(node, self._next(node, state="active"), "restored")
        else:
            self._tell(seen, node)

    def _tell(self, seen: Seen, node: Node) -> None:
        """Settled by somebody else meanwhile; what was told as drift is still told to be well."""
        if seen.drift.told:
            payload = announce.reconciled(node, node, self._journal_id, "unchanged", self._cause)
            self.changes.tell(payload)

    def _as_seen(self, node: Node, seen: Seen, entry: Entry) -> Node:
        """A parent may be another than before: what stood there was a file for a while."""
        parent_id = self._found_above(node.path)[-1]
        fields = looking(entry.fingerprint) | {"checksum": seen.checksum, "parent_id": parent_id}
        return self._next(node, state="active", **fields)

    def _doubt(self, node: Node, entry: Entry) -> None:
        if node.state == "inconsistent" and entry.fingerprint == looks(node):
            return
        fields = looking(entry.fingerprint) | {"checksum": None}
        doubted = self._next(node, state="inconsistent", **fields)
        self._change(node, doubted, "inconsistent")

    def _miss(self, node: Node) -> None:
        gone = self._next(node, state="missing")
        self.changes.write(gone)
        self.changes.recount(node, gone, self._above(node.path))
        self.changes.tell(announce.missing(node, gone, self._journal_id, self._cause))
        self._nodes[node.path] = gone

    def _bury(self, node: Node) -> None:
        """Something of another kind stands at the path now, so this node never comes back."""
        self.changes.delete(node, self._next(node, state="deleted"), self._above(node.path))

    def _create(self, seen: Seen, entry: Entry) -> None:
        assert entry.kind in ("file", "directory")
        above = self._found_above(seen.drift.path)
        node = self._made(seen.drift.path, entry.kind, above[-1])
        node = replace(node, checksum=seen.checksum, **looking(entry.fingerprint))
        outcome: ReconcileOutcome = "created"
        if not seen.readable:
            node, outcome = replace(node, state="inconsistent"), "inconsistent"
        self._change(None, node, outcome, above)

    def _change(
        self,
        before: Node | None,
        node: Node,
        outcome: ReconcileOutcome,
        above: list[int] | None = None,
    ) -> None:
        self.changes.write(node)
        self.changes.recount(before, node, above or self._above(node.path))
        self.changes.bytes += node.size_bytes if before is None else 0
        payload = announce.reconciled(before, node, self._journal_id, outcome, self._cause)
        self.changes.tell(payload)
        self._nodes[node.path] = node

    def _above(self, path: str) -> list[int]:
        """The ids of the directories over a path, the nearest last."""
        return [self._nodes[above].id for above in ("", *paths.parents(path))]

    def _found_above(self, path: str) -> list[int]:
        """The same for a path at which something was seen: then the directories over it are there
        too, and those not known to be are made or found again."""
        ids = [self._nodes[""].id]
        for directory in paths.parents(path):
            node = self._nodes.get(directory)
            if node is None:
                node = self._made(directory, "directory", ids[-1])
                self._change(None, node, "created", ids[:])
            elif node.state == "missing":
                self._restore(node, ids[:])
            ids.append(node.id)
        return ids

    def _restore(self, node: Node, above: list[int]) -> None:
        found = self._next(node, state="active", parent_id=above[-1])
        self._change(node, found, "restored", above)

    def _made(self, path: str, kind: NodeKind, parent_id: int) -> Node:
        return Node(
            id=next(self._fresh),
            mount_id=self._mount.id,
            mount=self._mount.name,
            parent_id=parent_id,
            path=path,
            name=paths.name(path),
            kind=kind,
            state="active",
            size_bytes=0,
            checksum=None,
            version=1,
            metadata={},
            inode=None,
            mtime_ns=None,
            etag=None,
            journal_id=self._journal_id,
            created_at=self._at,
            updated_at=self._at,
        )

    def _next(self, node: Node, **fields: Any) -> Node:
        version = node.version + 1
        return replace(
            node, version=version, journal_id=self._journal_id, updated_at=self._at, **fields
        )


def buried(page: Iterable[Node], above: list[int], journal_id: int) -> Changes:
    """Nodes that went with a directory for good; `above` are the directories that count them."""
    made = Changes(About(journal_id, "reconcile"))
    at = datetime.now(UTC)
    for node in page:
        gone = replace(
            node,
            state="deleted",
            version=node.version + 1,
            journal_id=journal_id,
            updated_at=at,
        )
        made.delete(node, gone, above)
    return made


def _rotten(seen: Seen, entry: Entry, node: Node) -> bool:
    """The bytes are others, and nobody wrote them."""
    known = seen.checksum is not None and node.checksum is not None
    return known and seen.checksum != node.checksum and unwritten(node, entry.fingerprint)
