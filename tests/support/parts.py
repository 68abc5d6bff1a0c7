"""Runs parts of the platform as the processes they are."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.warm import Program
from tristore.config import Settings
from tristore.local import port

# Neither the kernel (32768 and up) nor the embedded servers (20000 and up) give these to others,
# and processes that test at the same time have different hundreds.
_PORTS = itertools.cycle(range(10_000 + os.getpid() % 100 * 100, 10_100 + os.getpid() % 100 * 100))


def free_port() -> int:
    return next(number for number in _PORTS if port.is_free("127.0.0.1", number))


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
def part(settings: Settings, *argv: str, **extra: str) -> Iterator[Program]:
    """`tristore <argv>` for the length of the block; killed if it does not end by itself."""
    process = Program(["tristore", *argv], environment(settings, **extra))
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
