"""`tristore serve`: the API process."""

from tristore import failpoints, observe
from tristore.config import Settings

WS_MAX_BYTES = 64 * 1024


def serve() -> None:
    """Serve the HTTP and WebSocket API."""
    # Imported here, so that no other command pays for the server.
    import uvicorn

    from tristore.server import create_app

    settings = Settings()
    observe.configure_logs("api")
    failpoints.arm(settings.failpoints)
    uvicorn.run(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=WS_MAX_BYTES,
        # Idle readers cost 64 KiB each with compression and half of that without.
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
