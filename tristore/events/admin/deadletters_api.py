"""Dead letters over HTTP: list, show, send again, discard."""

from typing import Annotated, Any, Literal, TypeVar

import orjson
from fastapi import APIRouter, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from tristore.auth import requires
from tristore.db.deadline import connection_within
from tristore.errors import InvalidQuery, TooLarge
from tristore.events import log, strictjson
from tristore.events.admin import letter as desk
from tristore.events.admin import listing, replay
from tristore.events.admin.letter import Filter
from tristore.events.admin.listing import Instant, Listing, Name, Pattern
from tristore.tokens import Principal

router = APIRouter(prefix="/admin/dead-letters")

READING = [requires("events:read", "events:admin")]
CHANGING = [requires("events:admin")]
MAX_BODY_BYTES = 1024 * 1024
LIST_SECONDS = 2.0
REPLAY_SECONDS = 10.0
Model = TypeVar("Model", bound=BaseModel)
LetterId = Annotated[int, Path(ge=1, lt=2**63)]


class LetterFilter(BaseModel):
    """What a list and a replay by filter share; times bound when a letter was last seen."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    reason: Name | None = None
    type: Name | None = None
    source: Name | None = None
    from_: Instant | None = Field(None, alias="from")
    to: Instant | None = None

    def filter(self, state: str | None = "open") -> Filter:
        return Filter(
            reason=self.reason,
            type=Pattern.parse(self.type),
            source=Pattern.parse(self.source),
            since=self.from_,
            until=self.to,
            state=state,
        )


class LettersQuery(LetterFilter, Listing):
    state: Literal["open", "replayed", "discarded", "all"] = "open"


class CorrectionBody(BaseModel):
    """Nothing: as it was. `payload`: another payload. `event`: a whole event in its place."""

    model_config = ConfigDict(extra="forbid", strict=True)

    payload: dict[str, Any] | None = None
    event: dict[str, Any] | None = None

    @model_validator(mode="after")
    def one_of_them(self) -> "CorrectionBody":
        if self.payload is not None and self.event is not None:
            raise ValueError("give a corrected payload or a corrected event, not both")
        return self


class ReplayBody(LetterFilter):
    """A call takes up to `limit` letters; `cursor` goes on. `all` is needed without a filter."""

    model_config = ConfigDict(alias_generator=to_camel)

    dry_run: bool = False
    all: bool = False
    limit: int = Field(100, ge=1, le=500)
    cursor: Annotated[str, Field(max_length=1000)] | None = None


def _body_of(model: type[BaseModel], *, required: bool) -> dict[str, Any]:
    """The body is parsed strictly by hand, so OpenAPI is told what it looks like."""
    content = {"application/json": {"schema": model.model_json_schema(by_alias=True)}}
    return {"requestBody": {"required": required, "content": content}}


@router.get("", dependencies=READING)
async def letters(request: Request, query: Annotated[LettersQuery, Query()]) -> Response:
    """Newest first. Long bytes are cut here (`rawTruncated`); the letter itself has all."""
    wanted = query.filter(None if query.state == "all" else query.state)
    async with connection_within(request.app.state.platform.pool, LIST_SECONDS) as conn:
        found, cursor = await desk.find(conn, wanted, query.limit, query.cursor)
    return _json({"items": [letter.to_json() for letter in found], "nextCursor": cursor})


@router.get("/{letter_id}", dependencies=READING)
async def letter(request: Request, letter_id: LetterId) -> Response:
    async with request.app.state.platform.pool.connection() as conn:
        return _json((await desk.get(conn, letter_id)).to_json())


@router.post(
    "/replay",
    dependencies=CHANGING,
    status_code=202,
    openapi_extra=_body_of(ReplayBody, required=True),
)
async def replay_many(request: Request) -> Response:
    """Sends every open letter that matches again, up to `limit` a call. With `dryRun`, tells how
    many there are and the ids of the first."""
    body = await _read(request, ReplayBody)
    wanted = body.filter()
    if wanted == Filter() and not (body.all or body.dry_run):
        raise InvalidQuery('give a filter, or {"all": true} to replay every open dead letter')
    async with connection_within(request.app.state.platform.pool, REPLAY_SECONDS) as conn:
        epoch, mark = (await log.head(conn)).epoch, listing.fingerprint(wanted)
        after = listing.read_number(body.cursor, epoch, mark) if body.cursor else 0
        if body.dry_run:
            count, first = await desk.count_open(conn, wanted, after=after)
            return _json({"dryRun": True, "count": count, "firstIds": first})
        by = _principal(request)
        done = await replay.replay_all(conn, wanted, after=after, limit=body.limit, by=by)
    cursor = None if done.last is None else listing.write_cursor(epoch, mark, done.last)
    return _json({"dryRun": False, **done.to_json(), "nextCursor": cursor}, 202)


@router.post(
    "/{letter_id}/replay",
    dependencies=CHANGING,
    status_code=202,
    openapi_extra=_body_of(CorrectionBody, required=False),
)
async def replay_one(request: Request, letter_id: LetterId) -> Response:
    """Sends a letter again, as it was or corrected. If it is refused again, that is a new one."""
    body = await _read(request, CorrectionBody)
    correction = replay.Correction(body.payload, body.event)
    async with request.app.state.platform.pool.connection() as conn, conn.transaction():
        sent = await replay.replay(conn, letter_id, correction, by=_principal(request))
    return _json(sent.to_json(), 202)


@router.delete("/{letter_id}", dependencies=CHANGING)
async def discard(request: Request, letter_id: LetterId) -> Response:
    """Settles a letter for good; its row stays, and the ledger still accounts for its event."""
    async with request.app.state.platform.pool.connection() as conn, conn.transaction():
        found = await desk.discard(conn, letter_id, by=_principal(request))
    return _json(found.to_json())


async def _read(request: Request, model: type[Model]) -> Model:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise TooLarge(f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        # An event inside its wrapper may be as deep as one that comes alone.
        return model.model_validate(strictjson.loads(bytes(body) or b"{}", wrapped=1))
    except strictjson.StrictJsonError as error:
        raise InvalidQuery(f"the body is not understood: {error}") from None
    except ValidationError as error:
        listed = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(listed) from None


def _principal(request: Request) -> str:
    principal: Principal = request.state.principal
    return f"{principal.name} ({principal.id})"


def _json(body: dict[str, Any], status: int = 200) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")
