"""What a scenario plays on: a fresh database and queue, processes, a ledger, and seeded chance."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import httpx

from faults.process import Process, running
from tests.support.api import Api
from tests.support.database import rows, value
from tests.support.parts import environment, free_port
from tests.support.publishing import Ledger, check_ledger, commit_events
from tests.support.waiting import wait_until
from tristore.config import Settings
from tristore.db.migrate import migrate
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis

BUS = "relay,ingress"
# Several jobs even of few events, so that a fault can strike between two of them.
SMALL_JOBS = {"TRISTORE_EVENTS__RELAY_BATCH": "40"}
OPEN = "SELECT count(*) FROM bus.outbox WHERE state <> 'done'"
_count = itertools.count()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run was worth: a run without events or without faults shows nothing."""

    events: int
    faults: int

    def __post_init__(self) -> None:
        assert self.events > 0 and self.faults > 0, self


@dataclass(frozen=True)
class Stage:
    settings: Settings
    folder: Path
    events: int = 300
    faults: int = 3
    chance: Random = field(default_factory=lambda: Random(1))

    @property
    def url(self) -> str:
        return str(self.settings.database_url)

    @property
    def redis_url(self) -> str:
        return str(self.settings.redis_url)

    def with_settings(self, **changes: Any) -> "Stage":
        return replace(self, settings=self.settings.model_copy(update=changes))

    def part(self, *argv: str, **extra: str) -> AbstractContextManager[Process]:
        """`tristore <argv>`."""
        return self.program("tristore", *argv, **extra)

    def program(self, *argv: str, **extra: str) -> AbstractContextManager[Process]:
        log = self.folder / f"process-{next(_count)}.log"
        return running(argv, environment(self.settings, **extra), log)

    @contextmanager
    def serving(self, **extra: str) -> Iterator[Api]:
        """`tristore serve`, once it answers."""
        settings = self.settings.model_copy(update={"port": free_port()})
        with replace(self, settings=settings).part("serve", **extra) as process:
            api = Api(settings, process.pid)
            wait_until(lambda: _answers(api.url))
            yield api

    @contextmanager
    def own_redis(self) -> Iterator[tuple["Stage", EmbeddedRedis]]:
        """A Redis that the scenario may stop, fill and misconfigure."""
        with EmbeddedRedis(self.folder / f"redis-{next(_count)}") as server:
            yield self.with_settings(redis_url=server.start()), server

    @contextmanager
    def own_postgres(self) -> Iterator[tuple["Stage", EmbeddedPostgres]]:
        with EmbeddedPostgres(self.folder / f"postgres-{next(_count)}") as server:
            there = self.with_settings(database_url=server.start())
            migrate(there.url)
            yield there, server

    def value(self, query: str, *params: Any) -> Any:
        return value(self.url, query, *params)

    def wait_for(self, query: str, wanted: object) -> None:
        wait_until(lambda: self.value(query) == wanted)

    def rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        return rows(self.url, query, *params)

    def commit(self, count: int | None = None) -> Ledger:
        """Commits events to the outbox, as a store does."""
        return asyncio.run(commit_events(self.url, count or self.events))

    def last_words(self, lines: int = 5) -> str:
        """The end of what each process has said."""
        logs = sorted(self.folder.glob("process-*.log"))
        ends = [(log.name, log.read_text(errors="replace").splitlines()[-lines:]) for log in logs]
        return "\n".join(f"{name}: {line[:500]}" for name, end in ends for line in end)

    def settle(self, seconds: float = 60) -> None:
        """Waits until nothing is in flight."""
        wait_until(lambda: self.value(OPEN) == 0, seconds)

    def check(self, ledger: Ledger, *, letters: int = 0) -> None:
        """Every event of the ledger once, nothing else, and no good event refused."""
        check_ledger(self.url, ledger)
        refused = self.rows("SELECT event_id, reason FROM bus.dead_letters")
        assert len(refused) == letters, refused[:3]


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", trust_env=False, verify=False).status_code == 200
    except httpx.TransportError:
        return False
