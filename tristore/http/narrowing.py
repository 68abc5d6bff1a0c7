"""Routers are asked only for paths they could have a route for."""

from collections.abc import Callable, Iterable
from os.path import commonpath
from typing import Any

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from tristore.auth import leaves

Matches = Callable[[Scope], tuple[Match, Scope]]


def narrow(routes: Iterable[BaseRoute]) -> None:
    """Each included router would try all its routes on every request, and there are many."""
    for route in routes:
        paths = [_literal(leaf) for leaf in leaves([route])]
        if paths and all(path.startswith("/") for path in paths):
            narrowed = _within(commonpath(paths), route.matches)
            route.matches = narrowed  # type: ignore[method-assign,assignment]


def _literal(route: BaseRoute) -> str:
    """The part of its path that is the same in every request."""
    path: Any = getattr(route, "path", "")
    return str(path).partition("{")[0]


def _within(prefix: str, matches: Matches) -> Matches:
    def narrowed(scope: Scope) -> tuple[Match, Scope]:
        return matches(scope) if scope["path"].startswith(prefix) else (Match.NONE, {})

    return narrowed
