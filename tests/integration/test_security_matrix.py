"""Every route there is, asked with no token, an ended one, a wrong one and the right one."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.api import Api, own_api
from tristore import auth
from tristore.config import Settings
from tristore.server import create_app
from tristore.tokens import SCOPES

ROUTES = [r for r in auth.leaves(create_app(Settings()).routes) if auth.policy(r)]
CALLS = [
    (method, route.path, auth.policy(route) or ())
    for route in ROUTES
    if isinstance(route, APIRoute)
    for method in sorted(route.methods)
]
SOCKETS = [(r.path, auth.policy(r) or ()) for r in ROUTES if isinstance(r, APIWebSocketRoute)]


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as api:
        yield api


@pytest.fixture(scope="module")
def without_rights(api: Api) -> dict[str, dict[str, str]]:
    """Credentials that open nothing."""
    past = datetime.now(UTC) - timedelta(minutes=1)
    revoked = api.bearer(*SCOPES)
    with psycopg.connect(api.database, autocommit=True) as conn:
        conn.execute("UPDATE bus.tokens SET revoked_at = now()")
    return {
        "none": {},
        "expired": api.bearer(*SCOPES, expires_at=past),
        "revoked": revoked,
        "cookie": {"Cookie": "tristore_session=made-up"},
    }


@pytest.fixture(scope="module")
def tokens(api: Api) -> dict[str, dict[str, str]]:
    """A token for each scope, and for each one with all but that."""
    one = {scope: api.bearer(scope) for scope in SCOPES}
    return one | {auth.ANY_TOKEN: api.bearer(), "nothing": api.bearer()}


def test_the_matrix_is_not_empty() -> None:
    assert len(CALLS) > 15
    assert SOCKETS == [("/ws", ("events:read",))]


def ask(api: Api, method: str, path: str, headers: dict[str, str]) -> httpx.Response:
    """Only the head of the answer: some routes stream for ever."""
    url = api.url + path.replace("{id}", "1").replace("{", "").replace("}", "")
    sent: Any = {"json": {}} if method in ("POST", "PUT", "PATCH") else {}
    with httpx.stream(method, url, headers=headers, timeout=30, **sent) as response:
        if response.status_code >= 400:
            response.read()
        return response


@pytest.mark.parametrize(("method", "path", "scopes"), CALLS)
def test_a_route_opens_only_to_its_scope(
    api: Api,
    without_rights: dict[str, dict[str, str]],
    tokens: dict[str, dict[str, str]],
    method: str,
    path: str,
    scopes: tuple[str, ...],
) -> None:
    for name, headers in without_rights.items():
        answer = ask(api, method, path, headers)
        assert answer.status_code == 401, name
        assert method == "HEAD" or answer.json()["detail"]
    for scope in {*SCOPES, "nothing"} - {*scopes}:
        expected = auth.ANY_TOKEN in scopes
        assert (ask(api, method, path, tokens[scope]).status_code != 403) is expected, scope
    for scope in scopes:
        answer = ask(api, method, path, tokens[scope])
        assert answer.status_code not in (401, 403), scope
        assert answer.status_code < 500 or path == "/readyz", answer.text


@pytest.mark.parametrize(("path", "scopes"), SOCKETS)
def test_a_socket_opens_only_to_its_scope(
    api: Api,
    without_rights: dict[str, dict[str, str]],
    tokens: dict[str, dict[str, str]],
    path: str,
    scopes: tuple[str, ...],
) -> None:
    wrong = [headers for scope, headers in tokens.items() if scope not in scopes]
    for headers in (*without_rights.values(), *wrong):
        with pytest.raises(InvalidStatus) as refused:
            connect(api.ws + path, additional_headers=headers)
        assert refused.value.response.status_code == 403
    for scope in scopes:
        with connect(api.ws + path, additional_headers=tokens[scope]) as socket:
            assert socket.recv()
