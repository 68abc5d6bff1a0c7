"""Files over HTTP: put, get and delete by path, streamed both ways."""

from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import Busy, ContentGone, NotFound, PathConflict, VersionMismatch
from tristore.filestore import byte_range, conditions, drifts
from tristore.filestore.byte_range import ByteRange, Unsatisfiable
from tristore.filestore.differences import Difference
from tristore.filestore.direct import Direct
from tristore.filestore.download import Body, Download
from tristore.filestore.drifts import Detection
from tristore.filestore.model import Caller, Node, Outcome
from tristore.filestore.requests import (
    PREFIX,
    Asking,
    FileTarget,
    Target,
    filestore,
    wants_async,
)
from tristore.filestore.upload import Upload
from tristore.problem import answer

router = APIRouter(prefix=PREFIX, tags=["filestore"], route_class=Direct)

READING = [requires("filestore:read")]
WRITING = [requires("filestore:write")]
_FILE = "/files/{mount}/{path:anything}"
_ANY_BYTES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_HARMLESS = {
    "Accept-Ranges": "bytes",
    "Cache-Control": "private, no-cache",
    # What somebody uploaded must never run as a page of this server.
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
}


@router.put(_FILE, dependencies=WRITING, status_code=201, openapi_extra=_ANY_BYTES)
async def put(request: Request, target: FileTarget, asking: Asking) -> Response:
    """Stores the body under a path: 201 where there was nothing, 200 where it replaces a file.
    Takes `If-Match: "<version>"`, `If-None-Match: *`, `X-Checksum-SHA256` (hex or base64),
    `X-Metadata` (a JSON object) and `Idempotency-Key`. What is refused or cut changes nothing."""
    limits = request.app.state.platform.settings.filestore
    upload = Upload.announced(request.headers, limits.max_upload_bytes)
    only_new = conditions.if_none_match_any(request.headers)
    try:
        outcome = await filestore(request).put(
            asking,
            target.mount,
            target.path,
            upload.counted(request.stream()),
            if_match=await expected_version(request, asking, target),
            if_none_match=only_new,
            checksum=upload.checksum,
            size=upload.size,
            metadata=upload.metadata,
        )
    except PathConflict as refusal:
        raise VersionMismatch(str(refusal)) if only_new else refusal from None
    return answered(outcome, 201 if outcome.node.version == 1 else 200)


@router.get(_FILE, dependencies=READING, response_class=Response)
async def get(request: Request, target: FileTarget, asking: Asking) -> Response:
    """The bytes of a file. Takes one `Range`, `If-Range`, `If-Match`, `If-None-Match`,
    `If-Modified-Since` and `If-Unmodified-Since`. A whole file is compared with its checksum on the
    way: if it is damaged the connection is cut before the end, so that nobody takes it for good."""
    store = filestore(request)
    for _ in range(3):
        node = await store.by_path(asking, target.mount, target.path)
        if early := _settled(request, node):
            return early
        try:
            part = _asked_part(request.headers, node)
        except Unsatisfiable:
            return _unsatisfiable(request, node)
        start, stop = (part.start, part.stop) if part else (0, None)
        opened, _, content = await store.open_file(asking, target.mount, target.path, start, stop)
        damaged = partial(_doubt, request, asking, opened)
        body = Body(content, _comparable(opened, part), damaged)
        if (opened.id, opened.version) == (node.id, node.version):
            return Download(body, 206 if part else 200, _headers(opened, part))
        await body.close()
    raise Busy("the file changes faster than it can be opened; try again")


@router.head(_FILE, dependencies=READING, response_class=Response)
async def head(request: Request, target: FileTarget, asking: Asking) -> Response:
    """What `GET` would say of the file, without its bytes."""
    node = await filestore(request).by_path(asking, target.mount, target.path)
    return _settled(request, node) or Response(headers=_headers(node, None))


@router.delete(_FILE, dependencies=WRITING)
async def delete(
    request: Request, target: FileTarget, asking: Asking, recursive: bool = False
) -> Response:
    """Deletes a file or directory; one that is not empty needs `recursive=true`. With
    `Prefer: respond-async` the answer is 202 with the journal entry to follow."""
    outcome = await filestore(request).delete(
        asking,
        target.mount,
        target.path,
        if_match=await expected_version(request, asking, target),
        recursive=recursive,
        background=wants_async(request),
    )
    return answered(outcome)


async def expected_version(request: Request, asking: Caller, target: Target) -> int | None:
    expected = conditions.if_match(request.headers)
    if expected is None:
        return None
    store = filestore(request)
    if expected.node_id is not None and not await store.bench.knows(asking):
        # Where nothing is, the command says so in its own terms.
        with suppress(NotFound):
            expected.check_node(await store.by_path(asking, target.mount, target.path))
    return expected.version


def answered(outcome: Outcome, status: int = 200) -> Response:
    if outcome.under_way:
        place = f"{PREFIX}/journal/{outcome.journal_id}"
        body = orjson.dumps({"journalId": outcome.journal_id})
        return Response(body, 202, {"Location": place}, "application/json")
    headers = {"ETag": conditions.etag(outcome.node)}
    if outcome.replayed:
        headers["Idempotency-Replayed"] = "true"
    return Response(orjson.dumps(outcome.to_json()), status, headers, "application/json")


def _settled(request: Request, node: Node) -> Response | None:
    """The answers that need no content."""
    if node.kind == "directory":
        raise PathConflict(
            f"that is a directory; {PREFIX}/nodes/{node.id}/children lists what is in it"
        )
    if node.state == "missing":
        raise ContentGone("the file is missing from its mount; put it back there, or put it anew")
    conditions.check_read(request.headers, node)
    if conditions.unchanged(request.headers, node):
        named = ("ETag", "Last-Modified", "Cache-Control")
        headers = _headers(node, None)
        return Response(status_code=304, headers={name: headers[name] for name in named})
    return None


def _asked_part(headers: Headers, node: Node) -> ByteRange | None:
    if not conditions.range_holds(headers, node):
        return None
    return byte_range.parse(headers.get("range"), node.size_bytes)


def _comparable(node: Node, part: ByteRange | None) -> str | None:
    whole = part is None or (part.start, part.stop) == (0, node.size_bytes)
    return node.checksum if whole else None


async def _doubt(request: Request, asking: Caller, node: Node) -> None:
    """The reconciler reads the file and says what became of it."""
    mount = await filestore(request).mount(asking, node.mount)
    found = Difference(node.path, "unreadable", node.id)
    detection = Detection(mount, [found], "request", asking.source, asking.correlation_id)
    await drifts.record(request.app.state.platform.pool, detection)


def _headers(node: Node, part: ByteRange | None) -> dict[str, str]:
    length = part.stop - part.start if part else node.size_bytes
    headers = {
        **_HARMLESS,
        "Content-Type": "application/octet-stream",
        "Content-Length": str(length),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(node.name, safe='')}",
        "ETag": conditions.etag(node),
        "Last-Modified": conditions.last_modified(node),
    }
    if node.checksum:
        headers["X-Checksum-SHA256"] = node.checksum.removeprefix("sha256:")
    if part:
        headers["Content-Range"] = part.content_range(node.size_bytes)
    return headers


def _unsatisfiable(request: Request, node: Node) -> Response:
    body = {
        "type": "urn:tristore:range-not-satisfiable",
        "title": "Range not satisfiable",
        "status": 416,
        "detail": f"ask for one range within the {node.size_bytes} bytes of the file",
    }
    made = answer(416, body, request.scope)
    made.headers["Content-Range"] = f"bytes */{node.size_bytes}"
    return made
