"""The servers of a long run, and a fresh stage on them for every play."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from uuid import uuid4

import psycopg
from psycopg import sql

from faults.stage import Stage
from tests.conftest import TEMPLATE, at_database
from tests.support.api import own_database
from tristore.config import EventsSettings, Settings
from tristore.db.migrate import migrate
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis


class Theatre:
    def __init__(self, folder: Path, server_url: str, redis_url: str) -> None:
        self._folder = folder
        self._server_url = server_url
        self._redis_url = redis_url

    @contextmanager
    def stage(self, seed: str, *, events: int, faults: int) -> Iterator[Stage]:
        """A database and a queue that nobody has used; the same seed makes the same choices."""
        name = EventsSettings(
            queue=f"faults_{uuid4().hex}", lease_seconds=2, lock_seconds=2, poll_seconds=0.2
        )
        with (
            own_database(self._server_url) as database_url,
            tempfile.TemporaryDirectory(dir=self._folder) as folder,
        ):
            settings = Settings(database_url=database_url, redis_url=self._redis_url, events=name)
            yield Stage(settings, Path(folder), events, faults, Random(seed))


@contextmanager
def open_theatre() -> Iterator[Theatre]:
    with (
        tempfile.TemporaryDirectory(prefix="tristore-faults-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as postgres,
        EmbeddedRedis(Path(folder) / "redis") as redis,
    ):
        url = postgres.start()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        migrate(at_database(url, TEMPLATE))
        yield Theatre(Path(folder), url, redis.start())
