"""Work: one command between its two commits, with what stood at and above its paths."""

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tristore.events.payloads import Command
from tristore.filestore import claims, paths
from tristore.filestore.announce import About
from tristore.filestore.changes import Changes
from tristore.filestore.content import Fingerprint
from tristore.filestore.journal import Place
from tristore.filestore.model import Caller, Mount, Node


@dataclass(slots=True)
class Work:
    """While it lasts its claims hold, so `nodes` stay true: nobody else changes them."""

    journal_id: int
    command: Command
    caller: Caller
    mount: Mount
    path: str
    target_mount: Mount
    target_path: str
    plan: dict[str, Any]
    nodes: dict[Place, Node]
    fresh: list[int]
    progress: dict[str, Any] = field(default_factory=dict)
    bytes: int = 0
    nodes_affected: int = 0
    started: float = field(default_factory=time.monotonic)
    # Whether somebody else has begun it, so that its steps may have been done.
    resumed: bool = False
    # Content that was met in another shape than its node says.
    suspects: list[tuple[Mount, str]] = field(default_factory=list)

    @property
    def token(self) -> str:
        return str(self.plan["token"])

    @property
    def node(self) -> Node | None:
        """What stood at the command's path."""
        return self.nodes.get((self.mount.id, self.path))

    @property
    def source(self) -> Node:
        """The same, of a command that begins only where there is something."""
        node = self.node
        assert node is not None
        return node

    def changes(self) -> Changes:
        return Changes(About(self.journal_id, self.command, self.caller.principal))

    def above(self, mount: Mount, path: str) -> list[int]:
        """The ids of the directories over a path that exist."""
        found = (self.nodes.get((mount.id, folder)) for folder in claims.above(path))
        return [node.id for node in found if node is not None]

    def new_node(self, mount: Mount, path: str, kind: Any, now: datetime) -> Node:
        """A node that is about to be made under a directory that is there by now."""
        parent = self.nodes[mount.id, paths.folder(path)]
        node = Node(
            id=self.fresh.pop(0),
            mount_id=mount.id,
            mount=mount.name,
            parent_id=parent.id,
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
            journal_id=self.journal_id,
            created_at=now,
            updated_at=now,
        )
        self.nodes[mount.id, path] = node
        return node

    def next_version(self, node: Node, now: datetime, **fields: Any) -> Node:
        """The node as this command leaves it."""
        return replace(
            node, version=node.version + 1, journal_id=self.journal_id, updated_at=now, **fields
        )

    def grow(self, changes: Changes, mount: Mount, path: str, now: datetime) -> list[int]:
        """The directories above a path, made where they are absent, and the ids of them all."""
        above: list[int] = []
        for folder in claims.above(path):
            node = self.nodes.get((mount.id, folder))
            if node is None:
                node = self.new_node(mount, folder, "directory", now)
                changes.create(node, above)
            elif not node.present:
                back = self.next_version(node, now, state="active")
                self.nodes[mount.id, folder] = back
                changes.update(node, back, above)
            above.append(node.id)
        return above


def looks(node: Node) -> Fingerprint:
    """How the content of a node looked when it was last taken for true."""
    return Fingerprint(node.size_bytes, node.inode, node.mtime_ns, node.etag)


def unwritten(node: Node, found: Fingerprint) -> bool:
    """Whether nobody can have written what is there now. A disk that loses bits, or the end of a
    file, does not move its time; what grew within the same tick of the clock, somebody wrote."""
    was = looks(node)
    if found == was:
        return True
    same = was.mtime_ns is not None and found[1:] == was[1:]
    return same and found.size < was.size


def seen(fingerprint: Fingerprint) -> dict[str, Any]:
    """The same as fields of a node."""
    return {
        "size_bytes": fingerprint.size,
        "inode": fingerprint.inode,
        "mtime_ns": fingerprint.mtime_ns,
        "etag": fingerprint.etag,
    }


def now() -> datetime:
    return datetime.now(UTC)
