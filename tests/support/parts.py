"""Runs parts of the platform as the processes they are."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tristore.config import Settings


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(settings: Settings, **extra: str) -> dict[str, str]:
    events = settings.events
    return {
        **os.environ,
        "TRISTORE_DATABASE_URL": str(settings.database_url),
        "TRISTORE_REDIS_URL": str(settings.redis_url),
        "TRISTORE_DATA_DIR": str(settings.data_dir),
        "TRISTORE_HOST": settings.host,
        "TRISTORE_PORT": str(settings.port),
        "TRISTORE_EVENTS__QUEUE": events.queue,
        "TRISTORE_EVENTS__LEASE_SECONDS": str(events.lease_seconds),
        "TRISTORE_EVENTS__LOCK_SECONDS": str(events.lock_seconds),
        "TRISTORE_EVENTS__POLL_SECONDS": str(events.poll_seconds),
        **extra,
    }


@contextmanager
def part(settings: Settings, *argv: str, **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """`tristore <argv>` for the length of the block; killed if it does not end by itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tristore", *argv], env=environment(settings, **extra)
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
