"""Real servers for every test: one embedded Postgres and Redis a run, a fresh database a test."""

import functools
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import httpx
import hypothesis
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from xdist.scheduler import LoadFileScheduling

from tristore.config import EventsSettings, Settings
from tristore.db.migrate import migrate
from tristore.local.postgres import SETTINGS, EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis

TEMPLATE = "template_tristore"
HERE = Path(__file__).parent
_SLOW_FIRST = {"pipeline": 0, "faults": 1, "unit": 3}

# No test speaks TLS, yet each HTTP client would read all authorities of the machine anew, which
# takes longer than most requests here.
ssl.create_default_context = functools.cache(ssl.create_default_context)
# Five seconds without being told otherwise: a machine that is busy with the suite may take longer.
httpx._config.DEFAULT_TIMEOUT_CONFIG.__init__(60)
# The same examples in every run, however slow the machine is with them; others are looked for
# with --hypothesis-profile=default.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: a worker that gets one last would leave the other waiting."""
    items.sort(key=lambda item: _SLOW_FIRST.get(item.path.relative_to(HERE).parts[0], 2))


class OneSpark(LoadFileScheduling):
    """A file stays on one worker, with what it shares; all that runs on Spark shares one session,
    since a second one takes a gibibyte and a quarter of a minute to start."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "spark" if file.startswith("tests/pipeline/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSpark:
    # In the order of the collection, not of the number of tests in a file.
    config.option.loadscopereorder = False
    return OneSpark(config, log)


class ThrowawayPostgres(EmbeddedPostgres):
    """Outlives the kill of any of its processes as ever; only a machine that loses power would
    lose what it holds."""

    settings: ClassVar[dict[str, str]] = {**SETTINGS, "fsync": "off"}


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The embedded Postgres of this run, with a migrated template database."""
    with ThrowawayPostgres(tmp_path_factory.mktemp("postgres")) as server:
        url = server.start()
        with psycopg.connect(url, autocommit=True) as conn:
            conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
            _hash_lightly(conn, url)
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


def _hash_lightly(conn: psycopg.Connection, url: str) -> None:
    """Most of the work of a connection is to hash the password 4,096 times, and a run makes tens
    of thousands of them."""
    user = conninfo_to_dict(url)
    names = sql.Identifier(str(user["user"])), sql.Literal(str(user["password"]))
    conn.execute("SET scram_iterations = 1")
    conn.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(*names))


def _run(url: str, statement: str, *names: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
