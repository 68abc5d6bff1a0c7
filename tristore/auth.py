"""One gate for HTTP and WebSocket: deny by default, and every route declares what it needs."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from fastapi import Depends, WebSocketException
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from tristore.errors import Forbidden, InvalidRequest, TristoreError, Unauthenticated
from tristore.problem import problem
from tristore.tokens import SCOPES, Principal, Tokens

# Exact paths; a suffix or prefix rule would open routes nobody thought of.
PUBLIC = frozenset({"/healthz", "/readyz"})
ANY_TOKEN = "any token"
_POLICY = "tristore_policy"
_NEED_TOKEN = "a bearer token is needed: send Authorization: Bearer <token>"


def requires(scope: str) -> Any:
    """The policy of a route: `dependencies=[requires("events:read")]`."""
    assert scope in SCOPES or scope == ANY_TOKEN, scope

    async def check(connection: HTTPConnection) -> None:
        principal: Principal = connection.state.principal
        if scope == ANY_TOKEN or scope in principal.scopes:
            return
        if connection.scope["type"] == "websocket":
            raise WebSocketException(1008, f"the token lacks the scope {scope}")
        raise Forbidden(f"the token lacks the scope {scope}")

    setattr(check, _POLICY, scope)
    return Depends(check)


def undeclared(routes: Iterable[BaseRoute]) -> list[str]:
    """The routes that declare no policy and are not public; a server refuses to start with one."""
    return [getattr(route, "path", repr(route)) for route in leaves(routes) if not _declared(route)]


def leaves(routes: Iterable[BaseRoute]) -> Iterator[BaseRoute]:
    """Every route that answers, through included routers and mounted apps."""
    for route in routes:
        inner = getattr(route, "original_router", route)
        if isinstance(found := getattr(inner, "routes", None), list):
            yield from leaves(found)
        else:
            yield route


def _declared(route: BaseRoute) -> bool:
    if getattr(route, "path", None) in PUBLIC:
        return True
    if not isinstance(route, APIRoute | APIWebSocketRoute):
        return False
    return any(hasattr(d.call, _POLICY) for d in route.dependant.dependencies)


class Gate:
    """Lets nothing but the public paths through without a valid token."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"] in PUBLIC):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            connection.state.principal = await self._principal(connection)
            if scope["type"] == "websocket":
                _check_origin(connection)
        except TristoreError as refusal:
            await _refuse(refusal, scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _principal(self, connection: HTTPConnection) -> Principal:
        given = connection.headers.getlist("authorization")
        if len(given) > 1:
            raise InvalidRequest("more than one Authorization header")
        kind, _, token = (given[0] if given else "").partition(" ")
        if kind.lower() != "bearer" or not token.strip():
            raise Unauthenticated(_NEED_TOKEN)
        tokens: Tokens = connection.scope["app"].state.platform.tokens
        principal = await tokens.find(token.strip())
        if principal is None:
            raise Unauthenticated("the token is unknown, revoked or expired")
        return principal


def _check_origin(connection: HTTPConnection) -> None:
    """A page of another site must not ride on a browser's rights."""
    origin = connection.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != connection.headers.get("host"):
        raise Forbidden("that origin is not allowed")


async def _refuse(refusal: TristoreError, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": ""})  # HTTP 403
        return
    await problem(refusal, scope)(scope, receive, send)
