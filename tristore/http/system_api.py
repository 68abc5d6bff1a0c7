"""Health, readiness, metrics and the descriptions of the API."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from tristore.auth import ANY_TOKEN, requires
from tristore.events import asyncapi
from tristore.metrics import CONTENT_TYPE

router = APIRouter(tags=["system"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(request: Request) -> JSONResponse:
    """The servers behind it answer too, and the workers move; if not, why."""
    look = request.app.state.readiness.latest()
    body = {"ready": look.ready, "checks": look.checks, "degraded": look.degraded}
    return JSONResponse(body, 200 if look.ready else 503)


@router.get("/metrics", dependencies=[requires("events:read", "events:admin")])
async def metrics(request: Request) -> PlainTextResponse:
    """Prometheus' text format."""
    return PlainTextResponse(await request.app.state.scrape.text(), media_type=CONTENT_TYPE)


@router.get("/openapi.json", dependencies=[requires(ANY_TOKEN)])
async def openapi(request: Request) -> JSONResponse:
    """This API as an OpenAPI document."""
    return JSONResponse(request.app.openapi())


@router.get("/asyncapi.json", dependencies=[requires(ANY_TOKEN)])
async def asyncapi_document(request: Request) -> JSONResponse:
    """The events as an AsyncAPI document."""
    platform = request.app.state.platform
    async with platform.pool.connection() as conn:
        found = [*asyncapi.catalogue(), *await asyncapi.registered(conn)]
    return JSONResponse(asyncapi.document(found, platform.settings.events.queue))
