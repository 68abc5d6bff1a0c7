"""Errors as answers: RFC 9457 problem documents that say what to do and leak nothing."""

from typing import Any

import psycopg
from psycopg_pool import PoolTimeout
from starlette.responses import JSONResponse
from starlette.types import Scope

from tristore import errors

STATUS: dict[type[errors.TristoreError], tuple[int, str]] = {
    errors.InvalidRequest: (400, "Bad request"),
    errors.Unauthenticated: (401, "Not authenticated"),
    errors.Forbidden: (403, "Not allowed"),
    errors.NotFound: (404, "Not found"),
    errors.IdConflict: (409, "Conflict"),
    errors.PositionAhead: (409, "Position not reached"),
    errors.PositionGone: (410, "Position gone"),
    errors.TooLarge: (413, "Too large"),
    errors.InvalidEvent: (422, "Invalid event"),
    errors.Unavailable: (503, "Unavailable"),
    errors.OutcomeUnknown: (503, "Outcome unknown"),
}


def problem(error: errors.TristoreError, scope: Scope) -> JSONResponse:
    status, title = STATUS.get(type(error), (500, "Internal error"))
    detail = str(error) if status != 500 else "the request could not be completed"
    body: dict[str, Any] = {"type": f"urn:tristore:{_slug(error)}", "title": title}
    body |= {"status": status, "detail": detail}
    if isinstance(error, errors.InvalidEvent):
        body["errors"] = [v.as_json() for v in error.violations]
    return answer(status, body, scope)


def answer(status: int, body: dict[str, Any], scope: Scope) -> JSONResponse:
    body["requestId"] = scope.get("state", {}).get("request_id")
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="tristore"'
    if status == 503:
        headers["Retry-After"] = "1"
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def as_tristore_error(error: Exception) -> errors.TristoreError:
    """What a driver's error means to a caller."""
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | PoolTimeout):
        return errors.Unavailable("the database is away; try again")
    return errors.TristoreError()


def _slug(error: errors.TristoreError) -> str:
    name = type(error).__name__
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")
