"""The FastAPI app: routers, lifespan, and what every request passes on its way."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from tristore import __version__, auth, errors, observe
from tristore.config import Settings
from tristore.events.admin.admin_api import router as admin_router
from tristore.events.admin.deadletters_api import router as deadletters_router
from tristore.events.api import router as events_router
from tristore.events.live.live_api import router as live_router
from tristore.events.registry.schemas_api import router as schemas_router
from tristore.events.subscriptions_api import router as subscriptions_router
from tristore.filestore.commands_api import router as commands_router
from tristore.filestore.files_api import router as files_router
from tristore.filestore.jobs_api import router as jobs_router
from tristore.filestore.journal_api import router as journal_router
from tristore.filestore.mounts_api import router as mounts_router
from tristore.filestore.nodes_api import router as nodes_router
from tristore.http import pages
from tristore.http.access import Access
from tristore.http.answers import answer_errors
from tristore.http.bodies import Bodies
from tristore.http.express import Express
from tristore.http.meters import Meters
from tristore.http.narrowing import narrow
from tristore.http.pages import router as pages_router
from tristore.http.readiness import Readiness
from tristore.http.scrape import Scrape
from tristore.http.sessions_api import router as sessions_router
from tristore.http.system_api import router as system_router
from tristore.metastore.bulk_api import PATH as BULK
from tristore.metastore.bulk_api import router as bulk_router
from tristore.metastore.namespaces_api import router as namespaces_router
from tristore.metastore.records_api import router as records_router
from tristore.metastore.search_api import router as search_router
from tristore.metastore.sync_api import router as sync_router
from tristore.timestore.datasets_api import router as datasets_router
from tristore.timestore.exports_api import router as exports_router
from tristore.timestore.ingest_api import router as ingest_router
from tristore.timestore.partitions_api import router as partitions_router
from tristore.timestore.query_api import router as query_router
from tristore.timestore.storage_api import router as storage_router
from tristore.wiring import open_platform

SYSTEM = (system_router, pages_router, sessions_router)
# What one API process may serve; in production each can be a process of its own.
# In the order they are looked through: what is asked most stands first.
SERVICES = {
    "metastore": (records_router, bulk_router, search_router, namespaces_router, sync_router),
    "events": (
        live_router,
        events_router,
        admin_router,
        deadletters_router,
        schemas_router,
        subscriptions_router,
    ),
    "filestore": (
        files_router,
        commands_router,
        nodes_router,
        mounts_router,
        journal_router,
        jobs_router,
    ),
    "timestore": (
        query_router,
        datasets_router,
        ingest_router,
        storage_router,
        partitions_router,
        exports_router,
    ),
}


def create_app(settings: Settings, services: Sequence[str] = tuple(SERVICES)) -> FastAPI:
    meters = Meters()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_platform(settings) as platform, Readiness(platform) as readiness:
            app.state.platform = platform
            app.state.readiness = readiness
            app.state.scrape = Scrape(platform, readiness, meters)
            yield

    app = FastAPI(
        title="Tristore",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    chosen = (router for name in SERVICES if name in services for router in SERVICES[name])
    for router in (*chosen, *SYSTEM):
        app.include_router(router)
    if open_routes := auth.undeclared(app.routes):
        raise errors.StartRefused(f"routes without a declared policy: {', '.join(open_routes)}")
    narrow(app.routes)
    answer_errors(app)
    _describe_security(app)
    # The last one added runs first.
    larger = {BULK: settings.metastore.max_bulk_bytes}
    app.add_middleware(Express, routes=app.routes)
    app.add_middleware(Bodies, max_bytes=settings.http.max_body_bytes, larger=larger)
    app.add_middleware(auth.Gate, login=pages.login)
    app.add_middleware(Access, requests=meters.server.requests, seconds=meters.server.seconds)
    app.add_middleware(observe.RequestIds)
    return app


def _describe_security(app: FastAPI) -> None:
    """The gate is no dependency of a route, so the document is told of it here."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        document = made()
        document.setdefault("components", {})["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "session": {"type": "apiKey", "in": "cookie", "name": "tristore_session"},
        }
        document["security"] = [{"bearer": []}, {"session": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]
