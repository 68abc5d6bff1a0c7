"""Datasets over HTTP: which there are, making, altering and deleting one."""

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import (
    Forbidden,
    InvalidQuery,
    InvalidRequest,
    SchemaConflict,
    VersionMismatch,
)
from tristore.timestore import access
from tristore.timestore.dataset import SLUG, Dataset, Granularity
from tristore.timestore.datasets import Datasets, Maker, Wanted
from tristore.timestore.evolution import grown
from tristore.timestore.retention import AGE_PATTERN, Retention
from tristore.timestore.schemas import MAX_COLUMNS, Column
from tristore.tokens import Principal

PREFIX = "/timestore/v1"
MAX_KEY = 200
_ADMIN = [requires("timestore:admin")]
_READ = [requires("timestore:read", "timestore:admin")]
_VERSION = re.compile(r'"(\d{1,9})"', re.ASCII)
# Sums of these are what totals are made of: rows that went would make every later total wrong.
_KEPT_FOR_EVER = "filestore_growth"

router = APIRouter(prefix=PREFIX, tags=["timestore"])


class Model(BaseModel):
    """Unknown fields are refused: a mistyped option would silently do something else."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")


class ColumnSpec(Model):
    name: str = Field(min_length=1, max_length=200)
    type: Literal["timestamp", "string", "double", "long", "boolean", "date"]
    nullable: bool = True

    def column(self) -> Column:
        return Column(self.name, self.type, self.nullable)


class RetentionSpec(Model):
    """`maxAge` such as `90d` (m, h, d, w)."""

    max_age: Annotated[str, Field(pattern=AGE_PATTERN)] | None = None
    max_bytes: Annotated[int, Field(ge=1, lt=2**63)] | None = None

    def retention(self) -> Retention:
        return Retention(self.max_age, self.max_bytes)


Scope = Literal["timestore:read", "timestore:write", "timestore:admin"]
Schema = Annotated[list[ColumnSpec], Field(max_length=MAX_COLUMNS)]
Lateness = Annotated[int, Field(ge=0, le=2**31 - 1)]


class NewDataset(Model):
    slug: str = Field(pattern=f"^{SLUG.pattern}$")
    time_column: str = Field(min_length=1, max_length=200)
    granularity: Granularity = "day"
    columns: Schema = Field(alias="schema", min_length=1)
    retention: RetentionSpec = RetentionSpec()
    lateness_seconds: Lateness = 3600
    read_scope: Scope = "timestore:read"
    write_scope: Scope = "timestore:write"

    def wanted(self) -> Wanted:
        return Wanted(
            slug=self.slug,
            time_column=self.time_column,
            granularity=self.granularity,
            columns=tuple(column.column() for column in self.columns),
            retention=self.retention.retention(),
            lateness_seconds=self.lateness_seconds,
            read_scope=self.read_scope,
            write_scope=self.write_scope,
        ).checked()


class DatasetChange(Model):
    """What is left out stays; `schema` names new columns, and may repeat those there are."""

    columns: Schema | None = Field(None, alias="schema")
    retention: RetentionSpec | None = None
    lateness_seconds: Lateness | None = None
    read_scope: Scope | None = None
    write_scope: Scope | None = None
    time_column: str | None = None
    granularity: Granularity | None = None

    def apply(self, before: Dataset) -> Dataset:
        self._refuse_rebuilding(before)
        if before.kind == "log":
            self._refuse_for_log(before)
        given = {name: getattr(self, name) for name in ("lateness_seconds", "read_scope")}
        given["write_scope"] = self.write_scope
        changed = {name: value for name, value in given.items() if value is not None}
        if self.retention is not None:
            changed["retention"] = self.retention.retention()
        if self.columns is not None:
            changed["columns"] = grown(
                before.columns, (spec.column() for spec in self._specs(before))
            )
        return replace(before, **changed)

    def _specs(self, before: Dataset) -> list[ColumnSpec]:
        """The time column is required whatever a repetition of the schema says of it."""
        assert self.columns is not None
        return [spec for spec in self.columns if not _is_time(spec, before)]

    def _refuse_rebuilding(self, before: Dataset) -> None:
        for name in ("time_column", "granularity"):
            if getattr(self, name) not in (None, getattr(before, name)):
                raise SchemaConflict(
                    f"{to_camel(name)} is {getattr(before, name)} for good: the rows lie by it; "
                    "make another dataset"
                )

    def _refuse_for_log(self, before: Dataset) -> None:
        if self.model_fields_set - {"retention", "time_column", "granularity"}:
            raise Forbidden(f"{before.slug} is fed by the log; only its retention can be set")
        if before.slug == _KEPT_FOR_EVER and self.retention != RetentionSpec():
            raise Forbidden(f"{before.slug} is kept for ever: totals are sums over all of it")


@router.get("/datasets", dependencies=_READ)
async def listed(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """The datasets this token may read, by name."""
    if cursor is not None and not SLUG.fullmatch(cursor):
        raise InvalidQuery("the cursor is none that was given out; start without one")
    principal: Principal = request.state.principal
    found = await _datasets(request).list(
        after=cursor or "",
        limit=limit + 1,
        only=access.own_datasets(principal),
        scopes=principal.scopes,
    )
    page = found[:limit]
    more = page[-1].slug if len(found) > limit else None
    return _json({"items": [one.to_json() for one in page], "nextCursor": more})


@router.post("/datasets", dependencies=_ADMIN, status_code=201)
async def create(request: Request, spec: Annotated[NewDataset, Body()]) -> Response:
    """Makes a dataset. Sent again with the same `Idempotency-Key` and body, it answers what the
    first one made."""
    principal: Principal = request.state.principal
    wanted = spec.wanted()
    if not access.may_see(principal, wanted.slug):
        raise access.absent()
    maker = Maker(principal.name, principal.id, idempotency_key(request))
    made, before = await _datasets(request).create(wanted, maker)
    answer = _shown(made, 201)
    if before:
        answer.headers["Idempotency-Replayed"] = "true"
    return answer


@router.get("/datasets/{slug}", dependencies=_READ)
async def read(request: Request, slug: str) -> Response:
    """A dataset: its columns, how it is partitioned and kept, and who may use it."""
    return _shown(access.readable(request.state.principal, await _datasets(request).find(slug)))


@router.patch("/datasets/{slug}", dependencies=_ADMIN)
async def alter(request: Request, slug: str, change: Annotated[DatasetChange, Body()]) -> Response:
    """Adds nullable columns, and sets retention, lateness or scopes; takes `If-Match`."""
    _refuse_unseen(request, slug)
    wanted = _if_match(request)

    def changed(before: Dataset) -> Dataset:
        if wanted is not None and before.version != wanted:
            raise VersionMismatch(f"the dataset has version {before.version} by now; read it again")
        return change.apply(before)

    return _shown(await _datasets(request).alter(slug, changed, request.state.principal.name))


@router.delete("/datasets/{slug}", dependencies=_ADMIN, status_code=204, response_class=Response)
async def delete(request: Request, slug: str) -> Response:
    """No reader finds it any more; its files go with the next vacuum."""
    _refuse_unseen(request, slug)
    there = await _datasets(request).find(slug)
    if there is not None and there.kind == "log":
        raise Forbidden(f"{slug} is fed by the log and cannot be deleted")
    await _datasets(request).delete(slug, request.state.principal.name)
    return Response(status_code=204)


def idempotency_key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not (0 < len(key) <= MAX_KEY and key.isprintable()):
        raise InvalidRequest(f"an Idempotency-Key has 1 to {MAX_KEY} printable characters")
    return key


def _refuse_unseen(request: Request, slug: str) -> None:
    if not SLUG.fullmatch(slug) or not access.may_see(request.state.principal, slug):
        raise access.absent()


def _if_match(request: Request) -> int | None:
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = _VERSION.fullmatch(given.strip())
    if found is None:
        raise InvalidRequest('If-Match is * or a version in quotes, such as "3"')
    return int(found[1])


def _is_time(spec: ColumnSpec, before: Dataset) -> bool:
    return spec.name == before.time_column and spec.type == "timestamp"


def _datasets(request: Request) -> Datasets:
    return Datasets(request.app.state.platform.pool)


def _shown(dataset: Dataset, status: int = 200) -> Response:
    answer = _json(dataset.to_json(), status)
    answer.headers["ETag"] = dataset.etag
    return answer


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")
