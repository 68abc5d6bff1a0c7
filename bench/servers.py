"""Real servers in a temporary folder, and parts as processes, for the length of a measurement."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import psycopg
from psycopg.rows import tuple_row

from tristore.config import Settings
from tristore.db.migrate import migrate
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis

_LAST = "SELECT last FROM bus.ingress_head"


@contextmanager
def servers() -> Iterator[tuple[Settings, EmbeddedRedis]]:
    """Default durability: Postgres with fsync, Redis with its append-only file."""
    with (
        tempfile.TemporaryDirectory(prefix="tristore-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as postgres,
        EmbeddedRedis(Path(folder) / "redis") as redis,
    ):
        settings = Settings(
            database_url=postgres.start(), redis_url=redis.start(), data_dir=Path(folder)
        )
        migrate(str(settings.database_url))
        yield settings, redis


@contextmanager
def part(settings: Settings, *argv: str, **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        # Without what a Spark session of an earlier figure has left there.
        **{name: value for name, value in os.environ.items() if "SPARK" not in name},
        "TRISTORE_DATABASE_URL": str(settings.database_url),
        "TRISTORE_REDIS_URL": str(settings.redis_url),
        "TRISTORE_DATA_DIR": str(settings.data_dir),
        "TRISTORE_PORT": str(settings.port),
        **extra,
    }
    command = [sys.executable, "-m", "tristore", *argv]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(15)


def stored(settings: Settings) -> int:
    row = _asking(str(settings.database_url)).execute(_LAST).fetchone()
    return int(row[0]) if row else 0


@cache
def _asking(database_url: str) -> psycopg.Connection[tuple[int]]:
    """One connection for all the questions of a measurement: a new one for each would take
    the processor from what is measured."""
    return psycopg.connect(database_url, autocommit=True, row_factory=tuple_row)


def wait_until(ask: Callable[[], object], seconds: float = 120) -> float:
    """The time at which the answer was true."""
    deadline = time.perf_counter() + seconds
    while not ask():
        if time.perf_counter() > deadline:
            raise SystemExit("a measurement did not come to its end")
        time.sleep(0.005)
    return time.perf_counter()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
