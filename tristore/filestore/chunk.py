"""A chunk of an import: the nodes, sums and the one event of up to 500 entries found on a mount."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tristore.events.payloads import FilestoreNodesImported, ImportedNode
from tristore.filestore import paths
from tristore.filestore.announce import About
from tristore.filestore.changes import Changes
from tristore.filestore.content import Entry
from tristore.filestore.model import Mount, Node, Rollup


@dataclass(frozen=True, slots=True)
class Found:
    """An entry to track, with the id its node will have."""

    node_id: int
    entry: Entry
    checksum: str | None = None


@dataclass(slots=True)
class Chunk:
    """`directories` has the id of every directory above the entries, those among them too."""

    mount: Mount
    journal_id: int
    directories: Mapping[str, int]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def changes(self, found: Iterable[Found], principal: str | None) -> Changes:
        made = Changes(About(self.journal_id, "import", principal))
        made.nodes = [self._node(one) for one in found]
        for folder, more in self._by_folder(made.nodes).items():
            above = ("", *paths.parents(folder), *([folder] if folder else ()))
            made.count((self.directories[path] for path in above), more)
        made.bytes = sum(node.size_bytes for node in made.nodes)
        made.tell(self._event(made))
        return made

    def _by_folder(self, nodes: Iterable[Node]) -> dict[str, Rollup]:
        sums: dict[str, list[int]] = {}
        for node in nodes:
            total = sums.setdefault(paths.folder(node.path), [0, 0, 0])
            total[0] += node.size_bytes
            total[1 if node.kind == "file" else 2] += 1
        return {folder: Rollup(*total) for folder, total in sums.items()}

    def _node(self, found: Found) -> Node:
        path, kind, fingerprint = found.entry
        assert kind in ("file", "directory")
        folder, _, name = path.rpartition("/")
        return Node(
            id=found.node_id,
            mount_id=self.mount.id,
            mount=self.mount.name,
            parent_id=self.directories[folder],
            path=path,
            name=name,
            kind=kind,
            state="active",
            size_bytes=fingerprint.size,
            checksum=found.checksum,
            version=1,
            metadata={},
            inode=fingerprint.inode,
            mtime_ns=fingerprint.mtime_ns,
            etag=fingerprint.etag,
            journal_id=self.journal_id,
            created_at=self.at,
            updated_at=self.at,
        )

    def _event(self, made: Changes) -> FilestoreNodesImported:
        return FilestoreNodesImported(
            mount=self.mount.name,
            journal_id=self.journal_id,
            size_delta=made.bytes,
            nodes=tuple(_imported(node) for node in made.nodes),
        )


def _imported(node: Node) -> ImportedNode:
    return ImportedNode(
        node_id=str(node.id),
        path=node.path,
        kind=node.kind,
        version=node.version,
        size_bytes=node.size_bytes,
        checksum=node.checksum,
    )
