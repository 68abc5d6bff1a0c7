"""The filestore: commands on the tracked tree, and what can be read of it."""

from collections.abc import AsyncIterator
from typing import Any, Literal

from tristore.config import Settings
from tristore.db.pool import Pool
from tristore.errors import ChangedOutside, ContentDamaged, TristoreError
from tristore.events.poke import Poke
from tristore.filestore import copy, delete, directory, metadata, move, paths, put
from tristore.filestore.carry import Hands
from tristore.filestore.claims import Want
from tristore.filestore.content import Blobs, Fingerprint
from tristore.filestore.delete import Delete
from tristore.filestore.model import Caller, Mount, Node, Outcome
from tristore.filestore.opened import Opened
from tristore.filestore.opening import Opening, Unlike
from tristore.filestore.owners import Owner
from tristore.filestore.put import Put
from tristore.filestore.queries import Queries
from tristore.filestore.recovery import recover
from tristore.filestore.suspicion import suspect
from tristore.filestore.transfer import Transfer
from tristore.filestore.work import unwritten
from tristore.filestore.workbench import Workbench

# What a command in progress gets at the end of the process; then recovery has it.
_FINISH_SECONDS = 10.0


class Filestore(Queries):
    """Every command returns when it is durable, on its mount and in the database; a caller who
    goes away meanwhile does not stop it half-way. Mounts are named, and one that the caller may
    not see is absent."""

    def __init__(self, settings: Settings, pool: Pool, owner: Owner, poke: Poke) -> None:
        super().__init__(settings, pool, Opened(settings, pool))
        self.bench = Workbench(pool, settings.filestore, self._opened, owner, poke)
        self._hands = Hands(self.bench)

    async def put(
        self,
        caller: Caller,
        mount: str,
        path: str,
        content: AsyncIterator[bytes],
        *,
        if_match: int | None = None,
        if_none_match: bool = False,
        checksum: str | None = None,
        size: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Outcome:
        """Streams content in; what is refused or cut short changes nothing."""
        asked = Put(
            mount=await self._opened.writable(caller, mount),
            path=paths.check(path),
            if_match=if_match,
            if_none_match=if_none_match,
            checksum=checksum,
            size=size,
            metadata=checked(metadata),
        )
        return await put.run(self.bench, self._hands, caller, asked, content)

    async def create_directory(
        self, caller: Caller, mount: str, path: str, *, if_match: int | None = None
    ) -> Outcome:
        """With the directories above it. What stands there already is in the way; only one that is
        missing has a version to match."""
        at = await self._opened.writable(caller, mount)
        want = directory.want(at, paths.check(path), if_match)
        return await directory.run(self.bench, self._hands, caller, at, want)

    async def move(
        self,
        caller: Caller,
        mount: str,
        path: str,
        target_path: str,
        target_mount: str | None = None,
        *,
        if_match: int | None = None,
        background: bool = False,
    ) -> Outcome:
        """Keeps the node's id; never replaces. A directory moves with all that lies under it."""
        ends = await self._ends(caller, mount, path, target_path, target_mount)
        asked = Transfer("move", *ends, if_match)
        return await move.run(self.bench, self._hands, caller, asked, background)

    async def copy(
        self,
        caller: Caller,
        mount: str,
        path: str,
        target_path: str,
        target_mount: str | None = None,
        *,
        if_match: int | None = None,
        background: bool = False,
    ) -> Outcome:
        """Makes new nodes; never replaces."""
        ends = await self._ends(caller, mount, path, target_path, target_mount, reads=True)
        asked = Transfer("copy", *ends, if_match)
        return await copy.run(self.bench, self._hands, caller, asked, background)

    async def delete(
        self,
        caller: Caller,
        mount: str,
        path: str,
        *,
        if_match: int | None = None,
        recursive: bool = True,
        background: bool = False,
    ) -> Outcome:
        """Without `recursive` a directory must be empty. The node stays to be read as deleted."""
        at = await self._opened.writable(caller, mount)
        asked = Delete(at, paths.check(path), if_match, recursive)
        return await delete.run(self.bench, self._hands, caller, asked, background)

    async def update_metadata(
        self,
        caller: Caller,
        mount: str,
        path: str,
        patch: dict[str, Any],
        *,
        if_match: int | None = None,
    ) -> Outcome:
        """A merge patch (RFC 7396); nothing on the mount itself changes."""
        at = await self._opened.mount(caller, mount)
        want = Want(at.id, paths.check(path), must="exist", version=if_match)
        return await metadata.run(self.bench, self._hands, caller, want, at, patch)

    async def open_file(
        self, caller: Caller, mount: str, path: str, start: int = 0, stop: int | None = None
    ) -> tuple[Node, Fingerprint, AsyncIterator[bytes]]:
        """The bytes of the node as it is known; ChangedOutside where they are others."""
        at = await self._opened.mount(caller, mount)
        blobs = await self._opened.blobs(at)
        try:
            return await Opening(self._pool, blobs, at, paths.check(path), start, stop).open()
        except Unlike as unlike:
            await self.suspect(unlike.node)
            raise await _unlike(blobs, unlike.node) from None

    async def suspect(self, node: Node) -> None:
        """The content was met in another shape than the node says: have it reconciled."""
        mount = await self._opened.by_id(node.mount_id)
        blobs = await self._opened.blobs(mount)
        await suspect(self._pool, blobs, mount, [node.path], Caller(source="filestore.api"))

    async def blobs(self, mount: Mount) -> Blobs:
        return await self._opened.blobs(mount)

    async def recover(self) -> int:
        """Finishes or undoes what dead processes left open; says how many entries that were."""
        return await recover(self.bench)

    async def aclose(self) -> None:
        """Lets commands end; a long one stops after its chunk, and the next process goes on."""
        await self._hands.finish(_FINISH_SECONDS)
        await self._opened.aclose()

    async def _ends(
        self,
        caller: Caller,
        mount: str,
        path: str,
        target_path: str,
        target_mount: str | None,
        reads: Literal[True] | None = None,
    ) -> tuple[Mount, str, Mount, str]:
        opened = self._opened
        source = await (opened.mount(caller, mount) if reads else opened.writable(caller, mount))
        target = await opened.writable(caller, target_mount or mount)
        return source, paths.check(path), target, paths.check(target_path)


async def _unlike(blobs: Blobs, node: Node) -> TristoreError:
    entry = await blobs.stat(node.path)
    if node.checksum and entry and entry.kind == "file" and unwritten(node, entry.fingerprint):
        return ContentDamaged(
            f"the end of {node.path} is lost, and nobody wrote to it; restore it, or put it anew"
        )
    return ChangedOutside(f"{node.path} was changed outside; it is being reconciled, try again")


def checked(given: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else metadata.check(given)
