"""Routes whose arguments are all made from the request by a function each."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.responses import Response

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Direct(APIRoute):
    """Calls those functions, the check of its policy first, and then the endpoint. The framework
    works out anew at every request how to do the same; it still has the declarations for its
    documents, and the routes that ask for more."""

    def get_route_handler(self) -> Handler:
        found, endpoint = self.dependant, self.endpoint
        if found.request_param_name is None or _asks_more(found):
            return super().get_route_handler()
        steps = [(step.name, step.call, step.path_params) for step in found.dependencies]

        async def handle(request: Request) -> Response:
            made = {}
            for name, call, params in steps:
                assert call is not None
                result = await call(
                    request, **{p.name: request.path_params[p.name] for p in params}
                )
                if name is not None:
                    made[name] = result
            answer: Response = await endpoint(request, **made)
            return answer

        return handle


def _asks_more(found: Dependant) -> bool:
    """Whether anything but the request and the parts of its path is asked for."""
    inner = found.dependencies
    if found.path_params or any(step.dependencies for step in inner):
        return True
    asked = (each for one in (found, *inner) for each in _validated(one))
    return any(asked)


def _validated(one: Dependant) -> list[Any]:
    return [*one.query_params, *one.header_params, *one.cookie_params, *one.body_params]
