"""Routers are passed by where they have no route, and nowhere else."""

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from tristore.auth import leaves
from tristore.config import Settings
from tristore.server import create_app


def test_no_route_is_passed_by() -> None:
    app = create_app(Settings(database_url="postgresql://nowhere/none"))
    asked = [(route, leaf) for route in app.routes for leaf in leaves([route])]
    assert len(asked) > 50
    assert [leaf for route, leaf in asked if route.matches(_for(leaf))[0] != Match.FULL] == []


def _for(leaf: BaseRoute) -> Scope:
    """A request to the route, with a 7 for each part of its path that may be anything."""
    path = str(getattr(leaf, "path", ""))
    parts = ("7" if part.startswith("{") else part for part in path.split("/"))
    methods = getattr(leaf, "methods", None)
    asked = {"type": "http", "method": min(methods)} if methods else {"type": "websocket"}
    return {**asked, "path": "/".join(parts), "headers": []}
