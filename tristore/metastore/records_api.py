"""Records over HTTP."""

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import (
    InvalidQuery,
    InvalidRecord,
    InvalidRequest,
    NotFound,
    Violation,
)
from tristore.metastore import audits, shapes
from tristore.metastore.applying import Settled
from tristore.metastore.changes import Amend, Create, Delete, Purge, Put
from tristore.metastore.content import FIELDS, check_fields, content_of
from tristore.metastore.idempotency import Answer
from tristore.metastore.names import key_violation, namespace_violation
from tristore.metastore.patching import Patch
from tristore.metastore.records import Records, Wish
from tristore.metastore.requests import (
    NOWHERE,
    PREFIX,
    Address,
    At,
    AtPart,
    Router,
    attempt,
    author,
    condition,
    json_body,
    respond,
    visible,
)

router = Router(prefix=PREFIX, tags=["metastore"])

_RECORD = "/records/{namespace}/{key:recordkey}"
_READ = [requires("metastore:read")]
_WRITE = [requires("metastore:write")]
_DELETE = [requires("metastore:delete")]
_ADMIN = [requires("metastore:admin")]
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.post("/records", dependencies=_WRITE, status_code=201, openapi_extra=shapes.NEW_RECORD)
async def create(request: Request) -> Response:
    """Makes a record that is not there yet: `{"namespace", "key", "metadata", "tags", "owner"}`."""
    given, body = await _body(request)
    found = check_fields(given, FIELDS | {"namespace", "key"})
    namespace, key = found.get("namespace"), found.get("key")
    violations = [namespace_violation(namespace, "/namespace"), key_violation(key, "/key")]
    if listed := [violation for violation in violations if violation]:
        raise InvalidRecord(listed)
    change = Create(_writable(visible(request, str(namespace))), str(key), content_of(found))
    wish = Wish(author(request), _shown, attempt(request, body))
    return respond(await _records(request).create(change, wish))


# Before the routes of a record itself: a key may hold slashes.
@router.get(f"{_RECORD}/audit", dependencies=_READ)
async def audit(
    request: Request,
    at: AtPart,
    limit: Limit = 100,
    cursor: Annotated[str | None, Query(max_length=20)] = None,
) -> Response:
    """The versions of a record, newest first, each with what was before and after."""
    if at.part is None:
        return await read(request, at, request.query_params.get("includeDeleted") == "true")
    before = _version(cursor) if cursor is not None else audits.NEWEST
    async with request.app.state.platform.pool.connection() as conn:
        items = await audits.page(conn, at.namespace, at.key, before, limit)
    more = len(items) == limit and items[-1]["version"] > 1
    cursor = str(items[-1]["version"]) if more else None
    return respond(Answer(200, {"items": items, "nextCursor": cursor}))


@router.post(f"{_RECORD}/restore", dependencies=_WRITE, openapi_extra=shapes.VERSION)
async def restore(request: Request, at: AtPart) -> Response:
    """Makes a new version that holds what an earlier one held: `{"version": n}`."""
    if at.part is None:
        raise NotFound("a record is restored by POST …/restore")
    given, body = await _body(request)
    version = check_fields(given, {"version"}).get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 0 < version < 2**31:
        message = "give the number of the version to restore; GET …/audit lists them"
        raise InvalidRecord([Violation("/version", message)])
    wish = Wish(author(request), _shown, attempt(request, body))
    records = _records(request)
    found = await records.restore(at.namespace, at.key, version, condition(request), wish)
    return respond(found)


@router.delete(f"{_RECORD}/purge", dependencies=_ADMIN, status_code=204)
async def purge(request: Request, at: AtPart) -> Response:
    """Removes a record and the content of all its versions for good."""
    if at.part is None:
        raise InvalidRequest("a record whose key ends in /purge is deleted by a bulk call")
    change = Purge(at.namespace, at.key, condition(request))
    wish = Wish(author(request), lambda _: Answer(204, None), attempt(request))
    return respond(await _records(request).change(change, wish))


@router.get(_RECORD, dependencies=_READ)
async def read(
    request: Request,
    at: At,
    include_deleted: Annotated[bool, Query(alias="includeDeleted")] = False,
) -> Response:
    """One record."""
    found = await _records(request).find(at.namespace, at.key, deleted=include_deleted)
    return respond(Answer(200, found.to_json(), found.etag))


@router.put(_RECORD, dependencies=_WRITE, openapi_extra=shapes.WHOLE_RECORD)
async def put(request: Request, at: At) -> Response:
    """Makes or replaces a record; a deleted one comes back with this content."""
    _writable(at.namespace)
    given, body = await _body(request)
    found = check_fields(given, FIELDS | {"namespace", "key"})
    _check_same(found, at)
    change = Put(at.namespace, at.key, content_of(found), condition(request))
    wish = Wish(author(request), _shown, attempt(request, body))
    return respond(await _records(request).change(change, wish))


@router.patch(_RECORD, dependencies=_WRITE, openapi_extra=shapes.PATCH)
async def patch(request: Request, at: At) -> Response:
    """Changes a record: metadata by merge patch, tags by add, remove and set, the owner."""
    given, body = await _body(request)
    change = Amend(at.namespace, at.key, Patch.of(given), condition(request))
    wish = Wish(author(request), _shown, attempt(request, body))
    return respond(await _records(request).change(change, wish))


@router.delete(_RECORD, dependencies=_DELETE)
async def delete(request: Request, at: At) -> Response:
    """Marks a record as deleted; it can be restored."""
    change = Delete(at.namespace, at.key, condition(request))
    wish = Wish(author(request), _shown, attempt(request))
    return respond(await _records(request).change(change, wish))


def _records(request: Request) -> Records:
    found: Records = request.app.state.platform.metastore.records
    return found


async def _body(request: Request) -> tuple[Any, bytes]:
    return await json_body(request, most=request.app.state.platform.settings.http.max_body_bytes)


def _shown(settled: Settled) -> Answer:
    status = 201 if settled.outcome == "created" else 200
    return Answer(status, settled.record.to_json(), settled.record.etag)


def _writable(namespace: str) -> str:
    if namespace == NOWHERE:
        raise NotFound("there is no such namespace, or this token may not see it")
    return namespace


def _check_same(given: dict[str, Any], at: Address) -> None:
    found = [
        Violation(f"/{name}", "is not that of the path; leave it out")
        for name, value in (("namespace", at.namespace), ("key", at.key))
        if given.get(name, value) != value
    ]
    if found:
        raise InvalidRecord(found)


def _version(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and 0 < int(cursor) < 2**31):
        raise InvalidQuery("that is no cursor of this list; leave it out to start at the newest")
    return int(cursor)
