"""Searches over HTTP."""

from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from tristore.auth import requires
from tristore.db.deadline import connection_within
from tristore.errors import InvalidQuery
from tristore.metastore import filters, oneline, ordering, projection, search
from tristore.metastore.names import check_namespace
from tristore.metastore.search import Query

router = APIRouter(prefix="/metastore/v1", tags=["metastore"])

SEARCH_SECONDS = 2.0
_MAX_NAMESPACES = 100
ADVICE = (
    "narrow it by namespace, tag, owner or an equal value, leave `count` out, or let the namespace "
    "declare an index for the path it compares or sorts by, or text fields for free words"
)
Name = str | list[str]


class _Strict(BaseModel):
    """Unknown names are refused: a mistyped filter would silently show everything."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class SortBy(_Strict):
    field: Name
    direction: Literal["asc", "desc"] = "asc"


class SearchRequest(_Strict):
    namespace: str | Annotated[list[str], Field(max_length=_MAX_NAMESPACES)] | None = None
    filter: Any = None
    q: str | None = None
    sort: list[SortBy] = []
    fields: list[Name] = []
    limit: int = Field(100, ge=1, le=1000, strict=True)
    cursor: Annotated[str, Field(max_length=8000)] | None = None
    count: bool = False
    include_deleted: bool = False

    def query(self) -> Query:
        given = filters.EVERYTHING if self.filter is None else filters.parse(self.filter)
        return Query(
            namespaces=self._namespaces(),
            tree=filters.join(given, oneline.parse(self.q or "")),
            sorts=ordering.parse([(sort.field, sort.direction == "desc") for sort in self.sort]),
            limit=self.limit,
            cursor=self.cursor,
            include_deleted=self.include_deleted,
            count=self.count,
        )

    def _namespaces(self) -> tuple[str, ...] | None:
        if self.namespace is None:
            return None
        if not self.namespace:
            raise InvalidQuery("namespace: name one, or leave it out to search all")
        names = [self.namespace] if isinstance(self.namespace, str) else self.namespace
        return tuple(sorted({check_namespace(name) for name in names}))


@router.post("/records/search", dependencies=[requires("metastore:read")])
async def find(request: Request, body: SearchRequest) -> Response:
    """Records by a filter tree, a line of `q`, or both: `{"field": "tags", "op": "array_contains",
    "value": "gold"}`, joined by `and`, `or` and `not`. `fields` shows only some of each record."""
    query, shown = body.query(), projection.parse(body.fields)
    pool, allowed = request.app.state.platform.pool, request.state.principal.own_namespaces
    async with connection_within(pool, SEARCH_SECONDS, ADVICE) as conn:
        page = await search.find(conn, query, allowed)
    answer: dict[str, Any] = {"items": [shown.of(record) for record in page.records]}
    answer["nextCursor"] = page.next_cursor
    if page.count is not None:
        answer["count"] = page.count
    return Response(orjson.dumps(answer), media_type="application/json")
