"""Transfers: what move and copy have in common, from looking at the source to its new place."""

from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from tristore.errors import InvalidPath, NotFound, PathConflict
from tristore.filestore import journal, nodes, paths
from tristore.filestore.claims import Want
from tristore.filestore.journal import Intent
from tristore.filestore.model import Caller, Mount, Node
from tristore.filestore.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Transfer:
    """What is asked: the node at a path, to another path of the same or another mount."""

    command: Literal["move", "copy"]
    mount: Mount
    path: str
    target_mount: Mount
    target_path: str
    if_match: int | None = None

    def check(self) -> None:
        same = self.mount.id == self.target_mount.id
        if same and paths.within(self.target_path, self.path):
            raise PathConflict(f"{self.target_path} lies in {self.path} itself; choose another")

    def request_hash(self) -> bytes:
        source, target = (self.mount.name, self.path), (self.target_mount.name, self.target_path)
        return journal.request_hash(self.command, source, target, self.if_match)

    @property
    def between_mounts(self) -> bool:
        return self.mount.id != self.target_mount.id


async def look(bench: Workbench, asked: Transfer) -> Node:
    async with bench.pool.connection() as conn:
        node = await nodes.by_path(conn, asked.mount, asked.path)
    if node is None:
        raise NotFound(f"there is nothing at {asked.path}")
    if not node.present:
        raise PathConflict(f"the content of {asked.path} is missing from its mount; restore it")
    if node.kind == "directory":
        await _check_lengths(bench, asked)
    return node


async def _check_lengths(bench: Workbench, asked: Transfer) -> None:
    """No path under the directory may outgrow what can be asked for."""
    grown = len(asked.target_path.encode()) - len(asked.path.encode())
    if grown <= 0:
        return
    async with bench.pool.connection() as conn:
        if await nodes.longer(conn, asked.mount, asked.path, paths.MAX_PATH_BYTES - grown):
            raise InvalidPath(
                f"a path under {asked.path} would have more than {paths.MAX_PATH_BYTES} bytes; "
                "choose a shorter target"
            )


def intent(bench: Workbench, caller: Caller, asked: Transfer, node: Node, token: str) -> Intent:
    """Claims both ends. The source must still be what was looked at."""
    whole = node.kind == "directory"
    version = node.version if asked.if_match is None else asked.if_match
    source = Want(
        asked.mount.id, asked.path, subtree=whole, must="present", version=version, kind=node.kind
    )
    target = Want(asked.target_mount.id, asked.target_path, subtree=whole, makes=True, must="free")
    return Intent(
        command=asked.command,
        mount=asked.mount,
        path=asked.path,
        caller=caller,
        owner=bench.owner.id,
        wanted=[source, target],
        plan={"token": token, "size": node.size_bytes, "checksum": node.checksum},
        target_mount=asked.target_mount,
        target_path=asked.target_path,
        request_hash=asked.request_hash(),
    )


def new_token() -> str:
    return uuid4().hex
