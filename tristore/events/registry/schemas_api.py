"""Event schemas over HTTP: list, show, compare, register, switch off."""

from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import Response

from tristore.auth import requires
from tristore.errors import InvalidJson, InvalidQuery, SchemaConflict
from tristore.events import catalogue, strictjson
from tristore.events.admin import listing
from tristore.events.admin.listing import Listing, Name, Pattern
from tristore.events.api import read_body
from tristore.events.envelope import check_type
from tristore.events.registry import registration, schema_store
from tristore.events.registry.compatibility import Mode
from tristore.events.registry.registration import Registration
from tristore.events.registry.schema_store import Place
from tristore.events.registry.schema_version import SchemaVersion, Status
from tristore.tokens import Principal

router = APIRouter(prefix="/admin/event-schemas", dependencies=[requires("events:admin")])

MAX_BODY_BYTES = 256 * 1024
MAX_VERSION = 2**31 - 1
_MARK = listing.fingerprint("event-schemas")
Model = TypeVar("Model", bound=BaseModel)
TypeName = Annotated[str, AfterValidator(check_type)]
TypePath = Annotated[str, Path(max_length=200), AfterValidator(check_type)]
VersionPath = Annotated[int, Path(ge=1, le=MAX_VERSION)]


class SchemasQuery(Listing):
    type: Name | None = None


class CheckBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: TypeName
    schema_: dict[str, Any] = Field(alias="schema")
    mode: Mode = "backward"


class RegisterBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: TypeName
    schema_: dict[str, Any] = Field(alias="schema")
    version: Annotated[int, Field(ge=1, le=MAX_VERSION)] | None = None
    status: Status = "active"
    compatibility: Mode = "backward"


class StatusBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    status: Status


def _body_of(model: type[BaseModel]) -> dict[str, Any]:
    """The body is parsed strictly by hand, so OpenAPI is told what it looks like."""
    content = {"application/json": {"schema": model.model_json_schema(by_alias=True)}}
    return {"requestBody": {"required": True, "content": content}}


@router.get("")
async def schemas(request: Request, query: Annotated[SchemasQuery, Query()]) -> Response:
    """Every version, in the order of type, then version; `type` is exact or `prefix.*`."""
    after = _position(query.cursor)
    wanted = Pattern.parse(query.type)
    async with request.app.state.platform.pool.connection() as conn:
        stored = await schema_store.page(conn, after, wanted, query.limit + 1)
    found = sorted([*stored, *_shipped(after, wanted)], key=_place)
    shown, more = found[: query.limit], len(found) > query.limit
    cursor = listing.write_cursor("", _MARK, "{} {}".format(*_place(shown[-1]))) if more else None
    return _json({"items": [one.to_json() for one in shown], "nextCursor": cursor})


@router.post("/check", openapi_extra=_body_of(CheckBody))
async def check(request: Request) -> Response:
    """Compares a schema with the version in use and registers nothing. `compatible` is the
    verdict in the asked `mode`; every change has an example where one proves it."""
    body = await _read(request, CheckBody)
    async with request.app.state.platform.pool.connection() as conn:
        found = await registration.check(conn, body.type, body.schema_)
    return _json(found.to_json(body.mode))


@router.post("", status_code=201, openapi_extra=_body_of(RegisterBody))
async def register(request: Request) -> Response:
    """A new version, 201; the schema that is in use already, 200; one that breaks what
    `compatibility` protects, 409 with the verdict. It holds for every event that is published
    after the answer."""
    body = await _read(request, RegisterBody)
    wanted = Registration(body.type, body.schema_, body.version, body.status, body.compatibility)
    platform = request.app.state.platform
    async with platform.pool.connection() as conn:
        async with conn.transaction():
            found, is_new = await registration.register(conn, wanted, _principal(request))
        await schema_store.freshen(conn, platform.registry)
    return _json(found.to_json(), 201 if is_new else 200)


@router.get("/{type}")
async def schema(request: Request, type: TypePath) -> Response:
    """The version new events are checked with, and which others there are, newest first."""
    async with request.app.state.platform.pool.connection() as conn:
        found = await registration.find(conn, type)
        known = await registration.known_versions(conn, type)
    listed = [{"version": one.version, "status": one.status} for one in known[:100]]
    return _json({**found.to_json(), "versions": listed})


@router.get("/{type}/{version}")
async def schema_version(request: Request, type: TypePath, version: VersionPath) -> Response:
    async with request.app.state.platform.pool.connection() as conn:
        return _json((await registration.find(conn, type, version)).to_json())


@router.patch("/{type}/{version}", openapi_extra=_body_of(StatusBody))
async def set_status(request: Request, type: TypePath, version: VersionPath) -> Response:
    """`active`: for new events; `deprecated`: for events that name it; `disabled`: for none."""
    body = await _read(request, StatusBody)
    if catalogue.latest(type):
        raise SchemaConflict(f"{type} ships with the platform; its schema stays as it is")
    platform = request.app.state.platform
    async with platform.pool.connection() as conn:
        async with conn.transaction():
            await schema_store.lock(conn)
            found = await schema_store.set_status(conn, type, version, body.status)
        await schema_store.freshen(conn, platform.registry)
    return _json(found.to_json())


def _shipped(after: Place, wanted: Pattern | None) -> list[SchemaVersion]:
    every = [SchemaVersion(e.type, e.version, "active", e.schema) for e in catalogue.entries()]
    return [one for one in every if _place(one) > after and _is_wanted(one.type, wanted)]


def _is_wanted(type: str, wanted: Pattern | None) -> bool:
    if wanted is None:
        return True
    return type.startswith(wanted.text) if wanted.is_prefix else type == wanted.text


def _place(one: SchemaVersion) -> Place:
    return one.type, one.version


def _position(cursor: str | None) -> Place:
    if cursor is None:
        return "", 0
    found = listing.read_cursor(cursor, "", _MARK)
    type, _, version = found.partition(" ") if isinstance(found, str) else ("", "", "")
    if "\x00" in type or not (version.isascii() and version.isdigit() and len(version) < 11):
        raise InvalidQuery("that cursor was not made here; start without one")
    return type, min(int(version), MAX_VERSION)


async def _read(request: Request, model: type[Model]) -> Model:
    try:
        # A schema inside its wrapper may be as deep as a payload.
        given = strictjson.loads(await read_body(request, MAX_BODY_BYTES), wrapped=1)
        return model.model_validate(given)
    except strictjson.StrictJsonError as error:
        raise InvalidJson(str(error)) from None
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(found) from None


def _principal(request: Request) -> str:
    principal: Principal = request.state.principal
    return f"{principal.name} ({principal.id})"


def _json(body: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")
