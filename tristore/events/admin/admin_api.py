"""The operator's questions to the bus: find events, follow one, is anything missing, is it well."""

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from tristore.auth import requires
from tristore.db.deadline import connection_within
from tristore.errors import InvalidQuery, NotFound
from tristore.events import cloudevents
from tristore.events.admin import completeness, health, search
from tristore.events.admin.jsonpath import JsonPath
from tristore.events.admin.listing import Instant, Listing, Name, Pattern
from tristore.events.admin.search import Page
from tristore.events.admin.search_plan import Filter
from tristore.events.log import Stored

router = APIRouter(prefix="/admin", dependencies=[requires("events:read", "events:admin")])

SEARCH_SECONDS = 2.0
LEDGER_SECONDS = 20.0
Sequence = Annotated[int, Field(ge=0, lt=2**63)]


class EventsQuery(Listing):
    type: Name | None = None
    source: Name | None = None
    correlation_id: Name | None = None
    from_: Instant | None = Field(None, alias="from")
    to: Instant | None = None
    json_path: Name | None = Field(None, max_length=500)
    from_sequence: Sequence | None = None
    to_sequence: Sequence | None = None
    order: Literal["asc", "desc"] = "desc"

    def filter(self) -> Filter:
        return Filter(
            type=Pattern.parse(self.type),
            source=Pattern.parse(self.source),
            correlation_id=self.correlation_id,
            since=self.from_,
            until=self.to,
            json_path=JsonPath.parse(self.json_path) if self.json_path else None,
            first=self.from_sequence,
            last=self.to_sequence,
            ascending=self.order == "asc",
        )


class LedgerQuery(Listing):
    from_: Instant | None = Field(None, alias="from")
    to: Instant | None = None
    limit: int = Field(1440, ge=1, le=10_000)


@router.get("/events")
async def events(request: Request, query: Annotated[EventsQuery, Query()]) -> Response:
    """A page of the log: `type` and `source` take exact values or `prefix.*`, `from` and `to`
    bound `occurredAt`, `jsonPath` looks into the payload (`$.a.b[0] == "x"`, or `$.a` for "is
    there"). `scanned` is present when a page ended early; its `nextCursor` goes on."""
    return _page(request, await _find(request, query.filter(), query))


@router.get("/events/{event_id:path}/trace")
async def trace(request: Request, event_id: str, query: Annotated[Listing, Query()]) -> Response:
    """Everything with the correlation id of an event, in order; the event alone if it has none."""
    event = await _one(request, event_id)
    if event.correlation_id is None:
        return _page(request, Page([event], None))
    wanted = Filter(correlation_id=event.correlation_id, ascending=True)
    return _page(request, await _find(request, wanted, query))


@router.get("/events/{event_id:path}")
async def event(request: Request, event_id: str) -> Response:
    """One event; as a CloudEvent if the caller accepts `application/cloudevents+json`."""
    found = await _one(request, event_id)
    if cloudevents.ONE in request.headers.get("accept", ""):
        made = orjson.dumps(cloudevents.to_cloudevent(found))
        return Response(made, media_type=cloudevents.ONE)
    return _json(found.to_json())


@router.get("/completeness")
async def ledger(request: Request, query: Annotated[LedgerQuery, Query()]) -> Response:
    """Per source and minute: outbox rows = stored + dead-lettered + in flight; stored events = in
    the datasets' tables, and those of nodes = in the metastore's view; or the missing ids."""
    if query.from_ and query.to and query.from_ >= query.to:
        raise InvalidQuery("`from` must lie before `to`")
    platform = request.app.state.platform
    async with connection_within(platform.pool, LEDGER_SECONDS) as conn:
        namespace = platform.settings.records_of_nodes()
        datasets = platform.settings.log_datasets()
        found = await completeness.read(conn, query.from_, query.to, namespace, datasets)
    return _json(found.to_json(query.limit, query.cursor))


@router.get("/event-health")
async def event_health(request: Request) -> Response:
    """Queue depth, outbox backlog, lag of each consumer, the filestore sync, dead letters, publish
    rates."""
    platform = request.app.state.platform
    async with connection_within(platform.pool, SEARCH_SECONDS) as conn:
        found = await health.read(conn, platform.settings.records_of_nodes())
    return _json({**found, "queue": await health.queue(platform.queue)})


def _page(request: Request, page: Page) -> Response:
    """A page as the contract has it, or as a batch of CloudEvents with the cursor in a header."""
    if cloudevents.BATCH not in request.headers.get("accept", ""):
        return _json(page.to_json())
    made = orjson.dumps([cloudevents.to_cloudevent(event) for event in page.rows])
    headers = {"X-Next-Cursor": page.next_cursor} if page.next_cursor else {}
    return Response(made, headers=headers, media_type=cloudevents.BATCH)


async def _find(request: Request, wanted: Filter, listing: Listing) -> Page:
    async with connection_within(request.app.state.platform.pool, SEARCH_SECONDS) as conn:
        return await search.find(conn, wanted, listing.limit, listing.cursor)


async def _one(request: Request, event_id: str) -> Stored:
    async with request.app.state.platform.pool.connection() as conn:
        found = await search.by_id(conn, event_id)
    if found is None:
        raise NotFound(f"no event {event_id[:128]!r} is in the log; see /admin/dead-letters too")
    return found


def _json(body: dict[str, Any]) -> Response:
    return Response(orjson.dumps(body), media_type="application/json")
