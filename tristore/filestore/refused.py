"""Why an intent was refused, in words that name the next step."""

from collections.abc import Sequence

from tristore.errors import NotFound, PathConflict, TristoreError, VersionMismatch
from tristore.filestore import claims
from tristore.filestore.claims import Want
from tristore.filestore.journal import Place
from tristore.filestore.model import Node


def explain(wanted: Sequence[Want], nodes: dict[Place, Node]) -> TristoreError:
    for want in wanted:
        if found := why(want, nodes):
            return found
    raise AssertionError("an intent was refused without a reason")


def why(want: Want, nodes: dict[Place, Node]) -> TristoreError | None:
    """None: the path is as it must be."""
    over = (nodes.get((want.mount_id, path)) for path in claims.above(want.path))
    if file := next((node for node in over if node is not None and node.kind == "file"), None):
        return PathConflict(f"{file.path} is a file, so nothing can lie below it")
    node = nodes.get((want.mount_id, want.path))
    if node is None:
        return _absent(want)
    if want.kind is not None and node.kind != want.kind:
        return PathConflict(f"{want.path} is a {node.kind}, not a {want.kind}")
    return _standing(want, node)


def _absent(want: Want) -> TristoreError | None:
    if want.must in ("exist", "present", "empty"):
        return NotFound(f"there is nothing at {want.path}")
    if want.version is not None:
        return VersionMismatch(f"there is nothing at {want.path}, so it has no version")
    return None


def _standing(want: Want, node: Node) -> TristoreError | None:
    if want.must == "present" and node.state == "missing":
        return PathConflict(f"the content of {want.path} is missing from its mount; restore it")
    if want.version is not None and node.version != want.version:
        return VersionMismatch(
            f"{want.path} has version {node.version}, not {want.version}; read it and try again"
        )
    if want.must == "empty":
        return PathConflict(f"{want.path} is not empty; delete it with `recursive`")
    if want.must == "free" or (want.must == "unused" and node.state != "missing"):
        return PathConflict(f"{want.path} exists already; delete it first or choose another path")
    return None
