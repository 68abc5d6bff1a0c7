"""Bulk calls over HTTP."""

from typing import Any

from fastapi import Request
from starlette.responses import Response

from tristore.auth import requires
from tristore.db.pool import Connection
from tristore.errors import InvalidRecord, Terminal
from tristore.metastore import bulk, idempotency, shapes
from tristore.metastore.applying import Settled
from tristore.metastore.idempotency import Answer
from tristore.metastore.requests import PREFIX, Router, attempt, author, json_body, respond
from tristore.problem import STATUS

router = Router(prefix=PREFIX, tags=["metastore"])

PATH = f"{PREFIX}/records/bulk"


@router.post(
    "/records/bulk",
    dependencies=[requires("metastore:write", "metastore:delete")],
    openapi_extra=shapes.BULK,
)
async def run(request: Request) -> Response:
    """Many upserts and deletes in one transaction: all or nothing (`atomic`, the default), or
    each with its own result (`perItem`)."""
    platform = request.app.state.platform
    settings, metastore = platform.settings.metastore, platform.metastore
    given, body = await json_body(request, most=settings.max_bulk_bytes, wrapped=2)
    wanted = bulk.bulk_of(given, request.state.principal, settings.max_bulk_items)

    async def work(conn: Connection) -> Answer:
        async def change() -> Answer:
            results = await bulk.run(conn, metastore.applying, author(request), wanted)
            return Answer(200, {"results": [_shown(result) for result in results]})

        return await idempotency.once(conn, attempt(request, body), change)

    return respond(await metastore.settling.settle(work))


def _shown(result: Settled | Terminal) -> dict[str, Any]:
    if isinstance(result, Settled):
        status = 201 if result.outcome == "created" else 200
        return {"status": status, "outcome": result.outcome, "version": result.record.version}
    status, title = STATUS[type(result)]
    error: dict[str, Any] = {"title": title, "detail": str(result)}
    if isinstance(result, InvalidRecord):
        error["errors"] = [violation.as_json() for violation in result.violations]
    return {"status": status, "outcome": "refused", "error": error}
