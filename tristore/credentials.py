"""Who is asking: by bearer token, by a browser's session cookie, or by a single-use ticket."""

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from tristore.browser_sessions import COOKIE, BrowserSessions
from tristore.errors import Forbidden, InvalidRequest, Unauthenticated
from tristore.tokens import Principal, Tokens

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_IN_URL = ("token", "access_token")


async def identify(connection: HTTPConnection) -> Principal:
    """The principal; `connection.state.credential` then says how it was shown to be."""
    _refuse_token_in_url(connection)
    if connection.headers.get("authorization") is not None:
        principal = await _by_token(connection)
    elif "ticket" in connection.query_params and connection.scope["type"] == "websocket":
        principal = await _by_ticket(connection)
    elif COOKIE in connection.cookies:
        principal = await _by_cookie(connection)
    else:
        raise Unauthenticated("a bearer token is needed: send Authorization: Bearer <token>")
    if connection.scope["type"] == "websocket":
        _check_origin(connection, needed=connection.state.credential == "session")
    return principal


def _refuse_token_in_url(connection: HTTPConnection) -> None:
    if any(name in connection.query_params for name in _IN_URL):
        raise Unauthenticated(
            "a token in a URL ends up in logs and histories: revoke it, and send "
            "Authorization: Bearer <token>"
        )


async def _by_token(connection: HTTPConnection) -> Principal:
    given = connection.headers.getlist("authorization")
    if len(given) > 1:
        raise InvalidRequest("more than one Authorization header")
    kind, _, token = given[0].partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Unauthenticated("a bearer token is needed: send Authorization: Bearer <token>")
    tokens: Tokens = connection.scope["app"].state.platform.tokens
    connection.state.credential = "token"
    return _known(await tokens.find(token.strip()), "token is unknown, revoked or expired")


async def _by_ticket(connection: HTTPConnection) -> Principal:
    sessions: BrowserSessions = connection.scope["app"].state.platform.sessions
    connection.state.credential = "ticket"
    ticket = connection.query_params["ticket"]
    return _known(await sessions.redeem(ticket), "ticket is unknown, used or older than 30 s")


async def _by_cookie(connection: HTTPConnection) -> Principal:
    """A browser sends a cookie whoever makes it ask, so a change must come from our own page."""
    sessions: BrowserSessions = connection.scope["app"].state.platform.sessions
    connection.state.credential = "session"
    found = await sessions.find(connection.cookies[COOKIE])
    principal = _known(found, "session is over; log in again")
    if connection.scope.get("method", "GET") not in _SAFE:
        _check_origin(connection, needed=True)
    return principal


def _known(principal: Principal | None, refusal: str) -> Principal:
    if principal is None:
        raise Unauthenticated(f"the {refusal}")
    return principal


def _check_origin(connection: HTTPConnection, *, needed: bool) -> None:
    """A page of another site must not ride on a browser's rights."""
    origin = connection.headers.get("origin")
    if origin is None:
        if needed and connection.headers.get("sec-fetch-site") != "same-origin":
            raise Forbidden("a request with a session cookie must name its Origin")
        return
    listed = connection.scope["app"].state.platform.settings.http.allowed_origins.split(",")
    if urlsplit(origin).netloc != connection.headers.get("host") and origin not in listed:
        raise Forbidden("that origin is not allowed; see TRISTORE_HTTP__ALLOWED_ORIGINS")
