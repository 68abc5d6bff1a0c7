"""Opening a file: the bytes its node speaks of, though commands change both."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tristore.db.pool import Pool
from tristore.errors import Busy, ContentConflict, ContentGone, NotFound, PathConflict
from tristore.filestore import claims, nodes
from tristore.filestore.content import Blobs, Fingerprint
from tristore.filestore.model import Mount, Node
from tristore.filestore.stager import check_looks, closing

_WAIT_SECONDS = 3.0
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1

Opened = tuple[Node, Fingerprint, AsyncIterator[bytes]]


class Unlike(Exception):
    """The content is not the node's, and no command has anything to do with it."""

    def __init__(self, node: Node) -> None:
        self.node = node


@dataclass(frozen=True, slots=True)
class Opening:
    pool: Pool
    blobs: Blobs
    mount: Mount
    path: str
    start: int = 0
    stop: int | None = None

    async def open(self) -> Opened:
        """Content becomes visible a moment before its node: a reader who comes between waits."""
        deadline, pause = time.monotonic() + _WAIT_SECONDS, _FIRST_PAUSE
        while True:
            node = await self._node()
            if opened := await self._try(node):
                return opened
            holder = await self._holder(node)
            if time.monotonic() > deadline:
                raise Busy(f"journal entry {holder} works on {self.path}; try again")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _node(self) -> Node:
        async with self.pool.connection() as conn:
            node = await nodes.by_path(conn, self.mount, self.path)
        if node is None:
            raise NotFound(f"there is nothing at {self.path}")
        if node.kind == "directory":
            raise PathConflict(f"{self.path} is a directory; list it instead")
        if node.state == "missing":
            raise NotFound(f"the content of {self.path} is missing from its mount; put it anew")
        return node

    async def _try(self, node: Node) -> Opened | None:
        try:
            fingerprint, content = await self.blobs.read(self.path, self.start, self.stop)
        except (ContentGone, ContentConflict):
            return None
        try:
            check_looks(node, fingerprint)
        except ContentConflict:
            async with closing(content):
                return None
        return node, fingerprint, content

    async def _holder(self, node: Node) -> int | None:
        """Who works on the path; nobody: then the node must have changed since it was read."""
        async with self.pool.connection() as conn:
            # In this order: a command drops its claims when it changes its nodes.
            holder = await claims.holder(conn, self.mount.id, self.path)
            again = await nodes.by_path(conn, self.mount, self.path)
        if holder is None and again == node:
            raise Unlike(node)
        return holder
