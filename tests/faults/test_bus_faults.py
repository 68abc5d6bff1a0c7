"""Parts killed at every step, queues emptied, servers restarted: each event is stored once."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.support.database import log_count, value
from tests.support.parts import part
from tests.support.publishing import check_ledger, commit_events, enqueue_events
from tests.support.waiting import wait_until
from tristore.config import Settings
from tristore.local.redis import EmbeddedRedis

EVENTS = 300
RELAY = ["relay.after_claim", "relay.after_add"]
INGRESS = ["ingress.after_validate", "ingress.before_commit", "ingress.after_commit"]
DONE = "SELECT count(*) FROM bus.outbox WHERE state = 'done'"


def settled(settings: Settings, count: int) -> bool:
    return bool(value(str(settings.database_url), DONE) == count)


def died(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() == -9


@pytest.mark.parametrize("point", RELAY)
def test_a_relay_killed_at_any_step_loses_nothing(settings: Settings, point: str) -> None:
    ledger = asyncio.run(commit_events(str(settings.database_url), EVENTS))
    with part(settings, "work", "ingress"):
        with part(settings, "work", "relay", FAILPOINTS=f"{point}:exit9:1") as relay:
            wait_until(lambda: died(relay))
        with part(settings, "work", "relay"):
            wait_until(lambda: settled(settings, EVENTS))
    check_ledger(str(settings.database_url), ledger)


@pytest.mark.parametrize("point", INGRESS)
def test_an_ingress_worker_killed_at_any_step_loses_nothing(settings: Settings, point: str) -> None:
    ledger = asyncio.run(commit_events(str(settings.database_url), EVENTS))
    ledger |= asyncio.run(enqueue_events(str(settings.redis_url), settings.events.queue, 100))
    with part(settings, "work", "relay"):
        with part(settings, "work", "ingress", FAILPOINTS=f"{point}:exit9:1") as ingress:
            wait_until(lambda: died(ingress))
        with part(settings, "work", "ingress"):
            wait_until(lambda: settled(settings, EVENTS))
            wait_until(lambda: log_count(str(settings.database_url)) == len(ledger))
    check_ledger(str(settings.database_url), ledger)


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis that a test may stop, empty and start again."""
    with EmbeddedRedis(tmp_path / "redis") as server:
        yield server


def test_an_emptied_redis_costs_a_lease_and_no_event(
    settings: Settings, own_redis: EmbeddedRedis
) -> None:
    settings = settings.model_copy(update={"redis_url": own_redis.start()})
    ledger = asyncio.run(commit_events(str(settings.database_url), EVENTS))
    with part(settings, "work", "relay"):
        enqueued = "SELECT count(*) FROM bus.outbox WHERE state = 'enqueued'"
        wait_until(lambda: value(str(settings.database_url), enqueued) == EVENTS)
        with Redis.from_url(str(settings.redis_url)) as client:
            assert client.dbsize() > 0
            client.flushall()
        with part(settings, "work", "ingress"):
            wait_until(lambda: settled(settings, EVENTS))
    check_ledger(str(settings.database_url), ledger)


def test_publishing_goes_on_while_redis_is_away_and_drains_when_it_is_back(
    settings: Settings, own_redis: EmbeddedRedis
) -> None:
    settings = settings.model_copy(update={"redis_url": own_redis.start()})
    with part(settings, "work", "relay"), part(settings, "work", "ingress"):
        ledger = asyncio.run(commit_events(str(settings.database_url), 100))
        wait_until(lambda: settled(settings, 100))
        own_redis.stop()
        ledger |= asyncio.run(commit_events(str(settings.database_url), 200))
        assert log_count(str(settings.database_url)) == 100
        assert own_redis.start() == settings.redis_url
        wait_until(lambda: settled(settings, 300))
    check_ledger(str(settings.database_url), ledger)
