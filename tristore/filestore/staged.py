"""Content staged for a transfer before it is journaled."""

from tristore.errors import TristoreError
from tristore.filestore.content import Blobs
from tristore.filestore.model import Caller, Node
from tristore.filestore.stager import Stager
from tristore.filestore.suspicion import suspect
from tristore.filestore.transfer import Transfer
from tristore.filestore.workbench import Workbench


async def staged_file(
    bench: Workbench, caller: Caller, asked: Transfer, node: Node, token: str
) -> tuple[Blobs, str | None]:
    """Where the copy of a file waits now, under the token, and its checksum."""
    source, target = await bench.blobs(asked.mount), await bench.blobs(asked.target_mount)
    stager = Stager(asked.mount, source, target)
    try:
        staged = await stager.stage(node, token, asked.target_path)
    except TristoreError:
        for mount, path in stager.suspects:
            await suspect(bench.pool, source, mount, [path], caller)
        raise
    return target, staged.checksum or node.checksum
