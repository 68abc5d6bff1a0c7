"""What a request to the metastore says of itself: who asks, for which record, with which body."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

import orjson
from fastapi import APIRouter, Depends, Request
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from tristore.errors import InvalidJson, InvalidRecord, InvalidRequest, Violation
from tristore.events import strictjson
from tristore.events.api import read_body
from tristore.metastore.changes import Author
from tristore.metastore.conditions import Condition
from tristore.metastore.idempotency import Answer, Attempt
from tristore.metastore.names import check_key, check_namespace
from tristore.tokens import Principal

PREFIX = "/metastore/v1"
# The sub-resources of a record; a key that ends so writes its slash as %2F.
PARTS = ("audit", "restore", "purge")
MAX_ACTOR = 200
_MAX_IDEMPOTENCY_KEY = 200
# Larger bodies are read off the event loop.
_SMALL = 256 * 1024
# No namespace has this name: what a token may not see is looked for there, with the same work.
NOWHERE = ""


class Router(APIRouter):
    """Whose routes are looked through only for paths below its prefix: a request passes those of
    every router before it finds its own."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope["path"].startswith(PREFIX) else (Match.NONE, {})


class _Anything(Convertor[str]):
    """As `path`, and line breaks too: they must reach the check that refuses them."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("recordkey", _Anything())


@dataclass(frozen=True, slots=True)
class Address:
    """`namespace` is NOWHERE where the token has no right to it."""

    namespace: str
    key: str
    part: str | None


async def address(request: Request, namespace: str, key: str) -> Address:
    """From the undecoded path: a `%2F` belongs to the key, the last `/audit` does not."""
    segments = request.scope["raw_path"].split(b"/")[4:]
    named = len(segments) > 2 and segments[-1].decode("latin-1") in PARTS
    part = segments.pop().decode() if named else None
    found = check_namespace(_text(segments[0]))
    return Address(visible(request, found), check_key(_text(b"/".join(segments[1:]))), part)


async def record_address(at: Annotated[Address, Depends(address)]) -> Address:
    """The record itself, and not a part of it."""
    if at.part is not None:
        raise InvalidRequest(f"/{at.part} takes another method; in a key, write its / as %2F")
    return at


At = Annotated[Address, Depends(record_address)]
AtPart = Annotated[Address, Depends(address)]


def visible(request: Request, namespace: str) -> str:
    principal: Principal = request.state.principal
    own = principal.own_namespaces
    allowed = own is None or namespace in own
    return namespace if allowed else NOWHERE


def author(request: Request) -> Author:
    return Author(request.state.principal.name[:MAX_ACTOR], request.state.correlation_id)


def condition(request: Request) -> Condition:
    headers = request.headers
    return Condition.of(headers.get("if-match"), headers.get("if-none-match"))


async def json_body(request: Request, *, most: int, wrapped: int = 0) -> tuple[Any, bytes]:
    """The value and its bytes; `wrapped` counts the levels around the bodies of records in it."""
    body = await read_body(request, most)
    try:
        if len(body) <= _SMALL:
            return strictjson.loads(body, wrapped=wrapped), body
        return await asyncio.to_thread(strictjson.loads, body, wrapped=wrapped), body
    except strictjson.StrictJsonError as error:
        raise InvalidJson(str(error)) from None


def attempt(request: Request, body: bytes = b"") -> Attempt | None:
    """The write as one that may come twice; None where it carries no Idempotency-Key."""
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    if not (0 < len(key) <= _MAX_IDEMPOTENCY_KEY and key.isprintable()):
        raise InvalidRequest(
            f"an Idempotency-Key has 1 to {_MAX_IDEMPOTENCY_KEY} printable characters"
        )
    parts = [request.method.encode(), request.scope["raw_path"], body]
    conditions = (request.headers.get(name, "") for name in ("if-match", "if-none-match"))
    parts += [value.encode() for value in conditions]
    return Attempt.of(request.state.principal.id, key, *parts)


def respond(answer: Answer) -> Response:
    headers = {} if answer.etag is None else {"ETag": answer.etag}
    if answer.repeated:
        headers["Idempotency-Replayed"] = "true"
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    content = orjson.dumps(answer.body)
    return Response(content, answer.status, headers, "application/json")


def _text(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRecord([Violation("", "the path is not UTF-8")]) from None
