"""The FastAPI app: routers, lifespan, errors as problem documents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

from tristore import __version__, auth, errors, observe
from tristore.config import Settings
from tristore.events.api import router as events_router
from tristore.problem import answer, as_tristore_error, problem
from tristore.timestore.api import router as timestore_router
from tristore.wiring import Platform, open_platform


def create_app(settings: Settings) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_platform(settings) as app.state.platform:
            yield

    app = FastAPI(
        title="Tristore",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    _add_system_routes(app)
    app.include_router(events_router)
    app.include_router(timestore_router)
    if open_routes := auth.undeclared(app.routes):
        raise errors.StartRefused(f"routes without a declared policy: {', '.join(open_routes)}")
    _answer_errors(app)
    # The last one added runs first: a refusal carries its request id too.
    app.add_middleware(auth.Gate)
    app.add_middleware(observe.RequestIds)
    return app


def _add_system_routes(app: FastAPI) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz(request: Request) -> JSONResponse:
        """The servers behind it answer too."""
        checks = await _checks(request.app.state.platform)
        ready = all(state == "ok" for state in checks.values())
        return JSONResponse({"ready": ready, "checks": checks}, 200 if ready else 503)

    @app.get("/openapi.json", dependencies=[auth.requires(auth.ANY_TOKEN)])
    async def openapi(request: Request) -> JSONResponse:
        return JSONResponse(request.app.openapi())

    @app.get("/", dependencies=[auth.requires(auth.ANY_TOKEN)])
    async def index() -> HTMLResponse:
        return HTMLResponse(_INDEX)


async def _checks(platform: Platform) -> dict[str, str]:
    checks = {}
    for name, ask in (("postgres", _ask_postgres), ("redis", _ask_redis)):
        try:
            await ask(platform)
            checks[name] = "ok"
        except Exception as error:
            known = error if isinstance(error, errors.TristoreError) else as_tristore_error(error)
            checks[name] = str(known) or type(error).__name__
    return checks


async def _ask_postgres(platform: Platform) -> None:
    async with platform.pool.connection() as conn:
        await conn.execute("SELECT last FROM bus.ingress_head")


async def _ask_redis(platform: Platform) -> None:
    await platform.queue.ping()


def _answer_errors(app: FastAPI) -> None:
    async def known(request: Request, error: Exception) -> Response:
        if not isinstance(error, errors.TristoreError):
            error = as_tristore_error(error)
        return problem(error, request.scope)

    async def malformed(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        listed = [
            {"path": "/".join(map(str, item["loc"])), "message": item["msg"]}
            for item in error.errors()
        ]
        body = {"type": "urn:tristore:invalid-request", "title": "Invalid request", "status": 422}
        return answer(422, {**body, "detail": "see errors", "errors": listed}, request.scope)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        body = {"type": "about:blank", "title": error.detail, "status": error.status_code}
        return answer(error.status_code, {**body, "detail": error.detail}, request.scope)

    app.add_exception_handler(RequestValidationError, malformed)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(errors.TristoreError, known)
    app.add_exception_handler(Exception, known)


_INDEX = """<!doctype html><meta charset="utf-8"><title>Tristore</title>
<h1>Tristore</h1>
<ul><li><a href="/openapi.json">API</a></li><li><a href="/readyz">readiness</a></li>
<li><a href="/healthz">health</a></li></ul>
"""
