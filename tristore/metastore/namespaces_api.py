"""Namespaces over HTTP."""

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from tristore.auth import requires
from tristore.db.pool import Connection
from tristore.errors import NotFound
from tristore.metastore import fitting, idempotency, namespaces, shapes
from tristore.metastore.conditions import Condition, check_version
from tristore.metastore.idempotency import Answer
from tristore.metastore.model import Namespace
from tristore.metastore.names import check_namespace
from tristore.metastore.namespaces import Wanted
from tristore.metastore.requests import (
    NOWHERE,
    PREFIX,
    Router,
    attempt,
    author,
    condition,
    json_body,
    respond,
    visible,
)
from tristore.metastore.rules_request import wanted_rules

router = Router(prefix=PREFIX, tags=["metastore"])


@router.get("/namespaces", dependencies=[requires("metastore:read")])
async def listed(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """The namespaces this token may see, by name."""
    after = "" if cursor is None else check_namespace(cursor, "/cursor")
    allowed = request.state.principal.own_namespaces
    async with request.app.state.platform.pool.connection() as conn:
        found = await namespaces.page(conn, after, limit, allowed)
    items = [one.to_json() for one in found]
    more = found[-1].name if len(found) == limit else None
    return respond(Answer(200, {"items": items, "nextCursor": more}))


@router.get("/namespaces/{namespace}", dependencies=[requires("metastore:read")])
async def read(request: Request, namespace: str) -> Response:
    """A namespace and its rules."""
    name = visible(request, check_namespace(namespace))
    async with request.app.state.platform.pool.connection() as conn:
        found = await namespaces.find(conn, [name])
    if not found:
        raise _absent()
    return respond(Answer(200, found[0].to_json(), found[0].etag))


@router.put(
    "/namespaces/{namespace}",
    dependencies=[requires("metastore:admin")],
    openapi_extra=shapes.RULES,
)
async def put(request: Request, namespace: str) -> Response:
    """Sets all rules of a namespace and tells which records do not fit them; those stay as they
    are, and must fit when they are next written."""
    name = visible(request, check_namespace(namespace))
    if name == NOWHERE:
        raise _absent()
    platform = request.app.state.platform
    given, body = await json_body(request, most=platform.settings.http.max_body_bytes)
    wanted, holds = wanted_rules(given), condition(request)

    async def work(conn: Connection) -> Answer:
        async def change() -> Answer:
            made, status = await _changed(conn, name, wanted, holds, author(request).actor)
            return Answer(status, {"namespace": made.to_json()}, made.etag)

        return await idempotency.once(conn, attempt(request, body), change)

    answer = await platform.metastore.settling.settle(work)
    return respond(await _with_misfits(platform, name, answer))


async def _changed(
    conn: Connection, name: str, wanted: Wanted, holds: Condition, actor: str
) -> tuple[Namespace, int]:
    before = await namespaces.take(conn, name)
    if holds.versions is not None:
        check_version(holds.versions, before.version if before else None)
    if before is not None and wanted.same_as(before):
        return before, 200
    return await namespaces.put(conn, name, wanted, actor), 200 if before else 201


async def _with_misfits(platform: Any, name: str, answer: Answer) -> Answer:
    """Looked for after the commit: no writer waits for it, and what is written meanwhile fits."""
    async with platform.pool.connection() as conn:
        found = await namespaces.find(conn, [name])
    rules = platform.metastore.applying.rulebook.compiled(found[0])
    misfits = await fitting.misfits(platform.pool, name, rules)
    body = {**answer.body, "violations": misfits.to_json()}
    return Answer(answer.status, body, answer.etag, answer.repeated)


def _absent() -> NotFound:
    return NotFound("there is no such namespace, or this token may not see it")
