"""Nodes over HTTP: the tree as the filestore knows it, listed, looked up and through time."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from tristore.auth import requires
from tristore.events.payloads import NodeKind, NodeState
from tristore.filestore import paths
from tristore.filestore.conditions import etag
from tristore.filestore.model import Node, Rollup
from tristore.filestore.requests import (
    PREFIX,
    Asking,
    Model,
    MountName,
    NumberText,
    Page,
    PathText,
    filestore,
)

router = APIRouter(prefix=f"{PREFIX}/nodes", tags=["filestore"])

READING = [requires("filestore:read")]


class NodesQuery(Page):
    """`prefix` is a directory: everything anywhere below it, in the order of paths."""

    mount: MountName
    prefix: PathText = ""
    state: NodeState | None = None
    kind: NodeKind | None = None


class PathQuery(Model):
    mount: MountName
    path: PathText = ""


@router.get("", dependencies=READING)
async def nodes(
    request: Request, asking: Asking, query: Annotated[NodesQuery, Query()]
) -> Response:
    """The nodes of a mount in the order of their paths. Deleted ones only by `state=deleted`."""
    found, cursor = await filestore(request).nodes(
        asking,
        query.mount,
        paths.check_prefix(query.prefix),
        query.state,
        query.kind,
        query.limit,
        query.cursor,
    )
    return _json({"items": [node.to_json() for node in found], "nextCursor": cursor})


@router.get("/by-path", dependencies=READING)
async def by_path(
    request: Request, asking: Asking, query: Annotated[PathQuery, Query()]
) -> Response:
    """The node at a path; an empty path is the root of the mount."""
    path = paths.check(query.path) if query.path else ""
    return await _one(request, await filestore(request).by_path(asking, query.mount, path))


@router.get("/{node_id}", dependencies=READING)
async def node(request: Request, asking: Asking, node_id: NumberText) -> Response:
    """One node, deleted ones too; a directory with what lies under it (`rollup`)."""
    return await _one(request, await filestore(request).node(asking, node_id))


@router.get("/{node_id}/children", dependencies=READING)
async def children(
    request: Request, asking: Asking, node_id: NumberText, query: Annotated[Page, Query()]
) -> Response:
    """What lies directly in a directory, by name; directories with their `rollup`."""
    store = filestore(request)
    found, cursor = await store.children(asking, node_id, query.limit, query.cursor)
    sums = await store.rollups([node.id for node in found if node.kind == "directory"])
    items = [node.to_json(sums.get(node.id) or _nothing(node)) for node in found]
    return _json({"items": items, "nextCursor": cursor})


@router.get("/{node_id}/history", dependencies=READING)
async def history(
    request: Request, asking: Asking, node_id: NumberText, query: Annotated[Page, Query()]
) -> Response:
    """Every version a node has had, newest first."""
    found, cursor = await filestore(request).history(asking, node_id, query.limit, query.cursor)
    return _json({"items": [version.to_json() for version in found], "nextCursor": cursor})


async def _one(request: Request, node: Node) -> Response:
    sums = None
    if node.kind == "directory":
        sums = await filestore(request).rollup(node.id)
    return _json(node.to_json(sums), {"ETag": etag(node)})


def _nothing(node: Node) -> Rollup | None:
    return Rollup() if node.kind == "directory" else None


def _json(body: object, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), headers=headers, media_type="application/json")
