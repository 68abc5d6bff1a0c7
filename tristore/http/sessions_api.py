"""Browser sessions over HTTP: a token becomes a cookie that scripts cannot read."""

from typing import Any

from fastapi import APIRouter, Request, Response

from tristore.auth import ANY_TOKEN, requires
from tristore.browser_sessions import COOKIE
from tristore.errors import Forbidden
from tristore.events.envelope import time_text

router = APIRouter(tags=["browser"])


@router.post("/v1/session", dependencies=[requires(ANY_TOKEN)], status_code=201)
async def open_session(request: Request, response: Response) -> dict[str, Any]:
    """Exchanges the bearer token of this request for a session cookie."""
    if request.state.credential != "token":
        raise Forbidden("a session is opened with a bearer token, not with another session")
    platform = request.app.state.platform
    session = await platform.sessions.open(request.state.principal)
    response.set_cookie(
        COOKIE,
        session.secret,
        max_age=int(platform.settings.http.session_hours * 3600),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    response.headers["Cache-Control"] = "no-store"
    return {"name": request.state.principal.name, "expiresAt": time_text(session.expires_at)}


@router.delete("/v1/session", dependencies=[requires(ANY_TOKEN)], status_code=204)
async def end_session(request: Request, response: Response) -> None:
    """Ends the session of this request's cookie."""
    if cookie := request.cookies.get(COOKIE):
        await request.app.state.platform.sessions.end(cookie)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


@router.post("/v1/tickets", dependencies=[requires("events:read")], status_code=201)
async def issue_ticket(request: Request, response: Response) -> dict[str, Any]:
    """A ticket for one WebSocket: `/ws?ticket=…`, within 30 seconds, once."""
    ticket = await request.app.state.platform.sessions.issue_ticket(request.state.principal)
    response.headers["Cache-Control"] = "no-store"
    return {"ticket": ticket.secret, "expiresAt": time_text(ticket.expires_at)}
