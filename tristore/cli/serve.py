"""`tristore serve`: the API process."""

import gc
import resource
from typing import Annotated

import typer

from tristore import failpoints, observe
from tristore.config import Settings

WS_MAX_BYTES = 64 * 1024


def serve(
    services: Annotated[
        str | None,
        typer.Argument(
            help="Comma separated: events, filestore, metastore, timestore; default: all."
        ),
    ] = None,
) -> None:
    """Serve the HTTP and WebSocket API."""
    # Imported here, so that no other command pays for the server.
    import uvicorn

    from tristore.http.exposure import check_exposure
    from tristore.http.protocol import limited_http
    from tristore.http.sockets import ReaderSockets
    from tristore.server import SERVICES, create_app

    chosen = services.split(",") if services else list(SERVICES)
    if unknown := [name for name in chosen if name not in SERVICES]:
        raise typer.BadParameter(f"unknown: {', '.join(unknown)}; known: {', '.join(SERVICES)}")
    settings = Settings()
    check_exposure(settings)
    _allow_many_sockets()
    observe.configure_logs("api")
    failpoints.arm(settings.failpoints)
    app = create_app(settings, chosen)
    # What was made until now stays: looking for cycles in it again and again took a tenth of the
    # time of a small request.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http=limited_http(settings.http),
        ws=ReaderSockets,
        ws_max_size=WS_MAX_BYTES,
        # Idle readers cost 64 KiB each with compression and half of that without.
        ws_per_message_deflate=False,
        # A reader too slow to answer a ping is told 4408 by the feed before this ends it.
        ws_ping_timeout=40,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )


def _allow_many_sockets() -> None:
    """Each reader is an open file, and the usual soft limit of 1,024 is a thing of the past."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
