"""Real servers for every test: one embedded Postgres and Redis a run, a fresh database a test."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from tristore.config import EventsSettings, Settings
from tristore.db.migrate import migrate
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis

TEMPLATE = "template_tristore"
HERE = Path(__file__).parent
_SLOW_FIRST = {"pipeline": 0, "faults": 1, "unit": 3}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: a worker that gets one last would leave the other waiting."""
    items.sort(key=lambda item: _SLOW_FIRST.get(item.path.relative_to(HERE).parts[0], 2))


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The embedded Postgres of this run, with a migrated template database."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("postgres")) as server:
        url = server.start()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        migrate(at_database(url, TEMPLATE))
        yield url


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        yield server.start()


@pytest.fixture
def make_database(server_url: str) -> Iterator[Callable[[], str]]:
    """Fresh migrated databases, cloned from the template."""
    made: list[str] = []

    def make() -> str:
        made.append(f"test_{uuid4().hex}")
        _run(server_url, "CREATE DATABASE {} TEMPLATE {}", made[-1], TEMPLATE)
        return at_database(server_url, made[-1])

    yield make
    for name in made:
        _run(server_url, "DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def database_url(make_database: Callable[[], str]) -> str:
    return make_database()


@pytest.fixture
def queue_name() -> str:
    """A queue of its own for each test, on the shared Redis."""
    return f"test_{uuid4().hex}"


@pytest.fixture
def settings(database_url: str, redis_url: str, queue_name: str) -> Settings:
    """A platform of its own: fresh database, fresh queue, short leases and locks."""
    events = EventsSettings(queue=queue_name, lease_seconds=2, lock_seconds=2, poll_seconds=0.2)
    return Settings(database_url=database_url, redis_url=redis_url, events=events)


def at_database(url: str, name: str) -> str:
    parts = conninfo_to_dict(url)
    host = f"{parts['user']}:{parts['password']}@{parts['host']}:{parts['port']}"
    return f"postgresql://{host}/{name}?require_auth=scram-sha-256"


def _run(url: str, statement: str, *names: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
