"""What a route that raises is answered with, on HTTP and on the way to a socket."""

from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from fastapi import FastAPI, Request, WebSocket
from fastapi.exceptions import RequestValidationError, WebSocketRequestValidationError
from psycopg_pool import PoolTimeout
from starlette.exceptions import HTTPException, WebSocketException
from starlette.responses import Response
from starlette.types import Scope

from tristore.errors import Forbidden, TristoreError
from tristore.problem import answer, as_tristore_error, problem

_DRIVERS = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)


# What a route may raise that has an answer of its own.
KNOWN = (TristoreError, *_DRIVERS)


def answer_errors(app: FastAPI) -> None:
    for kind in KNOWN:
        app.add_exception_handler(kind, _known)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(WebSocketRequestValidationError, _malformed)
    app.add_exception_handler(WebSocketException, _refused_socket)


def known(error: Exception, scope: Scope) -> Response:
    found = error if isinstance(error, TristoreError) else as_tristore_error(error)
    return problem(found, scope)


async def _known(connection: Request | WebSocket, error: Exception) -> Response:
    return await _answered(connection, known(error, connection.scope))


async def _malformed(connection: Request | WebSocket, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | WebSocketRequestValidationError)
    return await _answered(connection, _listed(error.errors(), connection.scope))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"type": "about:blank", "title": error.detail, "status": error.status_code}
    body["detail"] = _NEXT_STEP.get(error.status_code, error.detail)
    made = answer(error.status_code, body, request.scope)
    made.headers.update(error.headers or {})
    return made


async def _refused_socket(socket: WebSocket, error: Exception) -> None:
    assert isinstance(error, WebSocketException)
    await _answered(socket, problem(Forbidden(error.reason), socket.scope))


async def _answered(connection: Request | WebSocket, response: Response) -> Response:
    """A socket that is not open yet is answered here; a request, by who asked."""
    if isinstance(connection, WebSocket):
        await connection.send_denial_response(response)
    return response


def _listed(errors: Iterable[Mapping[str, Any]], scope: Scope) -> Response:
    listed = [{"path": "/".join(map(str, item["loc"])), "message": item["msg"]} for item in errors]
    body = {"type": "urn:tristore:invalid-request", "title": "Invalid request", "status": 422}
    return answer(422, {**body, "detail": "see errors", "errors": listed}, scope)


_NEXT_STEP = {
    404: "there is nothing here; /docs lists every route",
    405: "this route takes other methods; see the Allow header",
}
