"""Routes whose arguments are all made from the request by a function each."""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
Body = tuple[str, TypeAdapter[Any]]


class NotDirect(Exception):
    """The framework has something to say about this request, and says it best itself."""


class Direct(APIRoute):
    """Calls those functions, the check of its policy first, and then the endpoint. The framework
    works out anew at every request how to do the same; it still has the declarations for its
    documents, the routes that ask for more, and the bodies that are wrong.

    `direct` is None on a route that asks for more; else it answers, or raises NotDirect."""

    direct: Handler | None = None

    def get_route_handler(self) -> Handler:
        plain, found = super().get_route_handler(), self.dependant
        if found.request_param_name is None or _asks_more(found):
            return plain
        direct = self.direct = _handler(found, self.endpoint, _body(found))

        async def handle(request: Request) -> Response:
            try:
                return await direct(request)
            except NotDirect:
                return await plain(request)

        return handle


def _handler(found: Dependant, endpoint: Callable[..., Any], body: Body | None) -> Handler:
    steps = [(step.name, step.call, step.path_params) for step in found.dependencies]

    async def handle(request: Request) -> Response:
        made = {}
        for name, call, params in steps:
            assert call is not None
            result = await call(request, **{p.name: request.path_params[p.name] for p in params})
            if name is not None:
                made[name] = result
        if body is not None:
            made[body[0]] = await _read(request, body[1])
        answer: Response = await endpoint(request, **made)
        return answer

    return handle


def _asks_more(found: Dependant) -> bool:
    """Whether anything but the request, the parts of its path and one body is asked for."""
    inner = found.dependencies
    if found.path_params or any(step.dependencies for step in inner):
        return True
    if len(found.body_params) > 1 or any(step.body_params for step in inner):
        return True
    asked = (each for one in (found, *inner) for each in _validated(one))
    return any(asked)


def _validated(one: Dependant) -> list[Any]:
    return [*one.query_params, *one.header_params, *one.cookie_params]


def _body(found: Dependant) -> Body | None:
    if not found.body_params:
        return None
    (field,) = found.body_params
    asked = field.field_info
    return field.name, TypeAdapter(asked.rebuild_annotation())


async def _read(request: Request, adapter: TypeAdapter[Any]) -> Any:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise NotDirect
    try:
        return adapter.validate_python(orjson.loads(await request.body()))
    except (orjson.JSONDecodeError, ValidationError):
        raise NotDirect from None
