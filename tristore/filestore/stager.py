"""The stager: copies of nodes, staged where they are to go, each the content its node speaks of."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tristore.errors import (
    ChangedOutside,
    ContentConflict,
    ContentDamaged,
    ContentGone,
)
from tristore.filestore.content import Blobs, Fingerprint, Staged
from tristore.filestore.model import Mount, Node
from tristore.filestore.work import looks


@runtime_checkable
class Closable(Protocol):
    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Stager:
    """`suspects` gains the nodes whose content was found to be another."""

    mount: Mount
    source: Blobs
    target: Blobs
    suspects: list[tuple[Mount, str]] = field(default_factory=list)

    async def stage(self, node: Node, token: str, target_path: str) -> Staged:
        try:
            staged = await self._copy(node, token, target_path)
            await self._compare(node, staged)
            return staged
        except (ContentGone, ContentConflict) as error:
            self.suspects.append((self.mount, node.path))
            raise ChangedOutside(f"{node.path}: {error}; nothing was changed") from error

    async def _copy(self, node: Node, token: str, target_path: str) -> Staged:
        if self.source is self.target:
            entry = await self.source.stat(node.path)
            if entry is None:
                raise ContentGone("the content is gone from its mount")
            check_looks(node, entry.fingerprint)
            return await self.target.stage_copy(token, node.path, target_path)
        fingerprint, content = await self.source.read(node.path)
        async with closing(content):
            check_looks(node, fingerprint)
            return await self.target.stage(token, content, target_path)

    async def _compare(self, node: Node, staged: Staged) -> None:
        if not staged.checksum or not node.checksum or staged.checksum == node.checksum:
            return
        await self.target.discard(staged.token)
        self.suspects.append((self.mount, node.path))
        raise ContentDamaged(
            f"the bytes of {node.path} are not those that were stored; nothing was changed"
        )


@asynccontextmanager
async def closing(content: AsyncIterator[bytes]) -> AsyncIterator[None]:
    """An iterator that is not read to its end holds a file open."""
    try:
        yield
    finally:
        if isinstance(content, Closable):
            await content.aclose()


def check_looks(node: Node, found: Fingerprint) -> None:
    if node.state == "active" and node.kind == "file" and found != looks(node):
        raise ContentConflict("the content was changed outside")
