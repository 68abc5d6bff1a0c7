"""A running API with a database of its own, and tokens for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from psycopg import sql

from tests.conftest import TEMPLATE, at_database
from tests.support.database import value
from tests.support.parts import free_port, part
from tests.support.waiting import wait_until
from tristore.config import EventsSettings, Settings
from tristore.db.queries import load
from tristore.tokens import hashed


@dataclass(frozen=True)
class Api:
    settings: Settings
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def ws(self) -> str:
        return f"ws://127.0.0.1:{self.settings.port}"

    @property
    def database(self) -> str:
        return str(self.settings.database_url)

    def bearer(self, *scopes: str, **limits: Any) -> dict[str, str]:
        """The header of a new token."""
        return {"Authorization": f"Bearer {make_token(self.database, *scopes, **limits)}"}

    def stored(self) -> int:
        """Everything that publishing could have left behind."""
        return sum(map(self.rows, ("outbox", "workflow_events", "dead_letters")))

    def rows(self, table: str) -> int:
        query = sql.SQL("SELECT count(*) FROM bus.{}").format(sql.Identifier(table))
        return int(value(self.database, query))


def make_token(
    database_url: str, *scopes: str, expires_at: datetime | None = None, **limits: Any
) -> str:
    """As `tristore token create` makes it, from wherever a test stands."""
    token = f"tri_{uuid4().hex}{uuid4().hex}"
    row = {"name": "test", "hash": hashed(token), "scopes": list(scopes)}
    row |= {"namespaces": None, "mounts": None, "datasets": None, **limits}
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(load("tristore", "tokens.sql").add, {**row, "expires_at": expires_at})
    return token


@contextmanager
def own_database(server_url: str) -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as conn:
        names = map(sql.Identifier, (name, TEMPLATE))
        conn.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
        yield at_database(server_url, name)
        conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def serving(settings: Settings, *, workers: str = "", **environment: str) -> Iterator[Api]:
    """`tristore serve`, and `tristore work <workers>`, until the block ends."""
    settings = settings.model_copy(update={"port": free_port()})
    with part(settings, "serve", **environment) as process:
        api = Api(settings, process.pid)
        wait_until(lambda: _answers(api.url))
        if not workers:
            yield api
            return
        with part(settings, "work", workers, **environment):
            yield api


@contextmanager
def own_api(
    server_url: str, redis_url: str, *, workers: str = "", **environment: str
) -> Iterator[Api]:
    """For a whole test module: the fixtures of one test do not live that long."""
    events = EventsSettings(
        queue=f"test_{uuid4().hex}", lease_seconds=2, lock_seconds=2, poll_seconds=0.2
    )
    with own_database(server_url) as database_url:
        settings = Settings(database_url=database_url, redis_url=redis_url, events=events)
        with serving(settings, workers=workers, **environment) as api:
            yield api


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").status_code == 200
    except httpx.TransportError:
        return False
