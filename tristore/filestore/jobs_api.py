"""Imports and audits over HTTP: asked for here, carried out by `tristore work reconcile`."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Body, Query, Request
from pydantic import Field
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import NotFound
from tristore.filestore import jobs, paths
from tristore.filestore.jobs import JobKind, JobRequest
from tristore.filestore.model import Caller
from tristore.filestore.requests import (
    PREFIX,
    Asking,
    Model,
    MountName,
    NumberText,
    PathText,
    filestore,
)

router = APIRouter(prefix=PREFIX, tags=["filestore"])

READING = [requires("filestore:read")]
WRITING = [requires("filestore:write")]


class ReconcileBody(Model):
    """A mount, or what lies at and under one of its paths."""

    mount: MountName
    path: PathText = ""


class ImportBody(ReconcileBody):
    """With `checksums` every file is read; without, a checksum stays unknown until it changes."""

    checksums: bool = False


class JobsQuery(Model):
    cursor: Annotated[str, Field(pattern=r"^[0-9]{1,18}$")] | None = None
    limit: int = Field(100, ge=1, le=1000)


@router.post("/reconcile", dependencies=WRITING, status_code=202)
async def reconcile(
    request: Request, asking: Asking, body: Annotated[ReconcileBody, Body()]
) -> Response:
    """Compares the mount with the tree and settles what differs; answers the job to follow."""
    return await _create(request, asking, body, JobRequest("reconcile", _path(body)))


@router.get("/reconcile", dependencies=READING)
async def reconciliations(
    request: Request, asking: Asking, query: Annotated[JobsQuery, Query()]
) -> Response:
    """Audits, newest first; also those that the clock and the watcher asked for."""
    return await _list(request, asking, "reconcile", query)


@router.get("/reconcile/{job_id}", dependencies=READING)
async def reconciliation(request: Request, asking: Asking, job_id: NumberText) -> Response:
    """How far an audit has come."""
    return await _show(request, asking, "reconcile", job_id)


@router.post("/import", dependencies=WRITING, status_code=202)
async def import_files(
    request: Request, asking: Asking, body: Annotated[ImportBody, Body()]
) -> Response:
    """Tracks the files that lie on the mount already; asked again, it goes on where it was."""
    wanted = JobRequest("import", _path(body), {"checksums": body.checksums})
    return await _create(request, asking, body, wanted)


@router.get("/import", dependencies=READING)
async def imports(
    request: Request, asking: Asking, query: Annotated[JobsQuery, Query()]
) -> Response:
    """Imports, newest first."""
    return await _list(request, asking, "import", query)


@router.get("/import/{job_id}", dependencies=READING)
async def imported(request: Request, asking: Asking, job_id: NumberText) -> Response:
    """How far an import has come."""
    return await _show(request, asking, "import", job_id)


def _path(body: ReconcileBody) -> str:
    return paths.check_prefix(body.path)


async def _create(
    request: Request, asking: Caller, body: ReconcileBody, wanted: JobRequest
) -> Response:
    mount = await filestore(request).mount(asking, body.mount)
    async with request.app.state.platform.pool.connection() as conn:
        job = await jobs.create(conn, mount, wanted, asking)
    return _json(job.to_json(), 202, {"Location": f"{PREFIX}/{job.kind}/{job.id}"})


async def _list(request: Request, asking: Caller, kind: JobKind, query: JobsQuery) -> Response:
    before = None if query.cursor is None else int(query.cursor)
    async with request.app.state.platform.pool.connection() as conn:
        found = await jobs.page(conn, asking, kind, before, query.limit)
    cursor = str(found[-1].id) if len(found) == query.limit else None
    return _json({"items": [job.to_json() for job in found], "nextCursor": cursor})


async def _show(request: Request, asking: Caller, kind: JobKind, job_id: int) -> Response:
    async with request.app.state.platform.pool.connection() as conn:
        job = await jobs.get(conn, job_id, asking)
    if job.kind != kind:
        raise NotFound(f"that is no {kind}; see {PREFIX}/{job.kind}/{job_id}")
    return _json(job.to_json())


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status, headers, "application/json")
