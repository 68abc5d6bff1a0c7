"""Requests for direct routes, answered without a search through all the others."""

from collections.abc import Iterable

from fastapi import Request
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tristore.auth import leaves
from tristore.filestore.direct import Direct, Handler, NotDirect
from tristore.http.answers import KNOWN, known


class Express:
    """Stands where the router does, behind the gate and the check of bodies. What it does not
    know, and what the framework must refuse, goes on to the router."""

    def __init__(self, app: ASGIApp, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        found = [route for route in leaves(routes) if isinstance(route, Direct)]
        self._routes = [(_literal(route), route, route.direct) for route in found if route.direct]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        direct = self._find(scope)
        if direct is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive, send)
        try:
            answer = await direct(request)
            await answer(scope, receive, send)
        except NotDirect:
            await self._app(scope, await _again(request, receive), send)
        except KNOWN as error:
            await known(error, scope)(scope, receive, send)

    def _find(self, scope: Scope) -> Handler | None:
        if scope["type"] != "http":
            return None
        for prefix, route, direct in self._routes:
            if scope["path"].startswith(prefix):
                match, found = route.matches(scope)
                if match is Match.FULL:
                    scope.update(found)
                    return direct
        return None


def _literal(route: Direct) -> str:
    return route.path.partition("{")[0]


async def _again(request: Request, receive: Receive) -> Receive:
    """The body, for whoever asks after it was read."""
    read: list[Message] = [{"type": "http.request", "body": await request.body()}]

    async def replay() -> Message:
        return read.pop() if read else await receive()

    return replay
