"""The filestore sync over HTTP: how it is, what it refused, pause, resume, retry and rebuild."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from tristore.auth import requires
from tristore.db.pool import Connection
from tristore.db.wakeups import LOG
from tristore.errors import InvalidQuery, NotFound, SwitchedOff
from tristore.events.admin import listing, sync_health
from tristore.events.admin.listing import Listing
from tristore.metastore import rebuild, refusals, sync_control
from tristore.metastore.requests import PREFIX, visible

router = APIRouter(prefix=f"{PREFIX}/sync", tags=["metastore"])

_READ = [requires("metastore:read", "metastore:admin")]
_ADMIN = [requires("metastore:admin")]
_LIST = "refusals"


@router.get("", dependencies=_READ)
async def status(request: Request) -> dict[str, Any]:
    """Whether the sync is on, how far it is behind, its last error, how many nodes it had to
    refuse, and the last rebuild."""
    async with request.app.state.platform.pool.connection() as conn:
        return await sync_health.shown(conn, _namespace(request))


@router.get("/refusals", dependencies=_READ)
async def refused(request: Request, query: Annotated[Listing, Query()]) -> dict[str, Any]:
    """The nodes whose records break the rules of the namespace, by key, with every violation."""
    after = "" if query.cursor is None else listing.read_cursor(query.cursor, "", _LIST)
    if not isinstance(after, str):
        raise InvalidQuery("that cursor was not made here; start without one")
    async with request.app.state.platform.pool.connection() as conn:
        found = await refusals.page(conn, _running(request), after, query.limit + 1)
    shown, more = found[: query.limit], len(found) > query.limit
    return {
        "items": [each.to_json() for each in shown],
        "nextCursor": listing.write_cursor("", _LIST, shown[-1].key) if more else None,
    }


@router.post("/pause", dependencies=_ADMIN)
async def pause(request: Request) -> dict[str, Any]:
    """Nothing more is written once this is answered; the sync goes on there when resumed."""
    return await _switch(request, paused=True)


@router.post("/resume", dependencies=_ADMIN)
async def resume(request: Request) -> dict[str, Any]:
    """The sync goes on where it was paused."""
    return await _switch(request, paused=False)


@router.post("/retry", dependencies=_ADMIN, status_code=202)
async def retry(request: Request) -> dict[str, Any]:
    """What was refused is tried again; after a change of rules that happens by itself."""
    namespace = _running(request)
    async with request.app.state.platform.pool.connection() as conn:
        again = await refusals.ask_again(conn, namespace)
        await _wake(conn)
        return {"retrying": again, **await sync_health.shown(conn, namespace)}


@router.post("/rebuild", dependencies=_ADMIN, status_code=202)
async def start_rebuild(request: Request) -> dict[str, Any]:
    """The log is read again from its beginning, and what differs from it is written. The sync
    process does it beside its other work; while one is under way there is no second (`started` is
    false then)."""
    namespace = _running(request)
    by = request.state.principal.name
    async with request.app.state.platform.pool.connection() as conn:
        if (await sync_health.read(conn, namespace)).paused:
            raise SwitchedOff("the sync is paused; resume it first: POST /metastore/v1/sync/resume")
        async with conn.transaction():
            started = await rebuild.request(conn, namespace, by)
        await _wake(conn)
        return {"started": started, **await sync_health.shown(conn, namespace)}


async def _switch(request: Request, *, paused: bool) -> dict[str, Any]:
    namespace = _running(request)
    by = request.state.principal.name
    async with request.app.state.platform.pool.connection() as conn:
        await sync_control.switch(conn, paused=paused, by=by)
        await _wake(conn)
        return await sync_health.shown(conn, namespace)


async def _wake(conn: Connection) -> None:
    await conn.execute("SELECT pg_notify(%s, '')", [LOG])


def _namespace(request: Request) -> str | None:
    """A token that may not see the records is not told how they come to be."""
    settings = request.app.state.platform.settings.metastore
    if not visible(request, settings.filestore_namespace):
        raise NotFound("there is no such namespace, or this token may not see it")
    found: str | None = request.app.state.platform.settings.records_of_nodes()
    return found


def _running(request: Request) -> str:
    if (namespace := _namespace(request)) is None:
        raise SwitchedOff(
            "the filestore sync is switched off; set TRISTORE_METASTORE__FILESTORE_SYNC to true "
            "for the API and run `tristore work sync`"
        )
    return namespace
