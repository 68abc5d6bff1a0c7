"""One gate for HTTP and WebSocket: deny by default, and every route declares what it needs."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fastapi import Depends, WebSocketException
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from tristore.credentials import identify
from tristore.errors import Forbidden, TristoreError, Unauthenticated
from tristore.problem import problem
from tristore.tokens import SCOPES, Principal

# Exact paths; a suffix or prefix rule would open routes nobody thought of.
PUBLIC = frozenset({"/healthz", "/readyz"})
ANY_TOKEN = "any token"
_FEED = frozenset({"events:read", "events:admin"})
_POLICY = "tristore_policy"


def requires(*scopes: str) -> Any:
    """The policy of a route: `dependencies=[requires("events:read")]`; one of several is enough."""
    assert scopes and all(scope in SCOPES or scope == ANY_TOKEN for scope in scopes), scopes

    async def check(connection: HTTPConnection) -> None:
        refusal = _refusal(connection.state.principal, scopes)
        if refusal is None:
            return
        if connection.scope["type"] == "websocket":
            raise WebSocketException(1008, refusal)
        raise Forbidden(refusal)

    setattr(check, _POLICY, scopes)
    return Depends(check)


def _refusal(principal: Principal, scopes: tuple[str, ...]) -> str | None:
    if ANY_TOKEN not in scopes and not set(scopes) & set(principal.scopes):
        return f"the token lacks the scope {' or '.join(scopes)}"
    # Events tell of every namespace, mount and dataset; no filter could be trusted to be whole.
    if principal.limited and _FEED & set(scopes):
        return "a token limited to namespaces, mounts or datasets gets no event feed"
    return None


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


def policy(route: BaseRoute) -> tuple[str, ...] | None:
    """The scopes of which a route wants one; none at all if it is public or declares nothing."""
    if not isinstance(route, APIRoute | APIWebSocketRoute):
        return None
    declared = (getattr(d.call, _POLICY, None) for d in route.dependant.dependencies)
    return next((scopes for scopes in declared if scopes), None)


def _declared(route: BaseRoute) -> bool:
    return getattr(route, "path", None) in PUBLIC or policy(route) is not None


class Gate:
    """Lets nothing but the public paths through without valid credentials."""

    def __init__(self, app: ASGIApp, login: Callable[[], Response]) -> None:
        self._app = app
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["path"] in PUBLIC):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            connection.state.principal = await identify(connection)
        except TristoreError as refusal:
            await self._refusal(refusal, connection)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, refusal: TristoreError, connection: HTTPConnection) -> Response:
        if not isinstance(refusal, Unauthenticated):
            return problem(refusal, connection.scope)
        if connection.scope["type"] == "websocket":
            return problem(Forbidden(str(refusal)), connection.scope)
        if connection.scope["method"] == "GET" and _is_page(connection):
            return self._login()
        return problem(refusal, connection.scope)


def _is_page(connection: HTTPConnection) -> bool:
    """A person with a browser, who can be asked for the token."""
    return "text/html" in connection.headers.get("accept", "")
