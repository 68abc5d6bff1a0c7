"""Readiness: red with the reason soon after a server is away or a worker stands still."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import Api, serving
from tests.support.parts import part
from tests.support.waiting import wait_until
from tristore.config import Settings
from tristore.db.migrate import migrate
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis

EVENT = {"type": "a.b.c", "source": "s", "payload": {}}
RED_WITHIN = 10


@pytest.fixture
def api(settings: Settings) -> Iterator[Api]:
    with serving(settings) as api:
        yield api


def checks(api: Api) -> dict[str, str]:
    """Asked as an operator's probe would: the answer itself must never take long."""
    answer = httpx.get(f"{api.url}/readyz", timeout=2)
    body: dict[str, Any] = answer.json()
    assert answer.status_code == (200 if body["ready"] else 503)
    assert body["ready"] is all(state == "ok" for state in body["checks"].values())
    found: dict[str, str] = body["checks"]
    return found


def turns(api: Api, name: str, start: str) -> Callable[[], bool]:
    return lambda: checks(api).get(name, "").startswith(start)


def test_all_is_well(api: Api) -> None:
    wait_until(lambda: set(checks(api)) == {"postgres", "redis", "relay", "ingress"})
    wait_until(lambda: set(checks(api).values()) == {"ok"})


def test_without_a_queue_there_is_no_redis_to_ask(settings: Settings) -> None:
    with serving(settings.model_copy(update={"redis_url": "inline"})) as api:
        wait_until(lambda: checks(api) == {"postgres": "ok", "relay": "ok"})
        page = httpx.get(f"{api.url}/metrics", headers=api.bearer("events:read"))
        assert 'tristore_up{part="relay"} 1' in page.text


def test_a_relay_that_stands_still(api: Api) -> None:
    httpx.post(f"{api.url}/v1/events", json=EVENT, headers=api.bearer("events:publish"))
    wait_until(turns(api, "relay", "stuck"), RED_WITHIN)
    with part(api.settings, "work", "relay,ingress"):
        wait_until(turns(api, "relay", "ok"))


def test_an_ingress_that_stands_still(api: Api) -> None:
    with part(api.settings, "work", "relay"):
        httpx.post(f"{api.url}/v1/events", json=EVENT, headers=api.bearer("events:publish"))
        wait_until(turns(api, "ingress", "stuck"), RED_WITHIN)
        assert checks(api)["relay"] == "ok"
        with part(api.settings, "work", "ingress"):
            wait_until(turns(api, "ingress", "ok"))


def test_redis_away_and_back(settings: Settings, tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis") as redis:
        settings = settings.model_copy(update={"redis_url": redis.start()})
        with serving(settings) as api:
            wait_until(turns(api, "redis", "ok"))
            redis.stop()
            wait_until(lambda: checks(api)["redis"] != "ok", RED_WITHIN)
            assert "Redis is away" in checks(api)["redis"]
            answer = httpx.post(
                f"{api.url}/v1/events", json=EVENT, headers=api.bearer("events:publish")
            )
            assert answer.status_code == 202  # publishing over HTTP does not need it
            redis.start()
            wait_until(turns(api, "redis", "ok"))


def test_postgres_away_and_back(settings: Settings, tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path / "postgres") as postgres:
        settings = settings.model_copy(update={"database_url": postgres.start()})
        migrate(str(settings.database_url))
        with serving(settings) as api:
            headers = api.bearer("events:publish")
            wait_until(turns(api, "postgres", "ok"))
            postgres.stop()
            wait_until(lambda: checks(api)["postgres"] != "ok", RED_WITHIN)
            answer = httpx.post(f"{api.url}/v1/events", json=EVENT, headers=headers, timeout=5)
            assert answer.status_code == 503
            assert answer.headers["retry-after"]
            postgres.start()
            wait_until(turns(api, "postgres", "ok"))
            answer = httpx.post(f"{api.url}/v1/events", json=EVENT, headers=headers, timeout=20)
            assert answer.status_code == 202
