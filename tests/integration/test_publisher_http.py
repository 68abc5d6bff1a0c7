"""Publishing over HTTP: the SDK's door, and requests without ids that are sent again."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import Api, make_token
from tests.support.database import log_count, value
from tests.support.parts import free_port, part
from tests.support.publishing import Ledger, check_ledger, digest
from tests.support.waiting import until, wait_until
from tristore import Publisher
from tristore.config import PublisherSettings, Settings
from tristore.errors import Forbidden, IdConflict, Unauthenticated, Unsent

KIND = "test.thing.made"
QUICK = PublisherSettings(tries=1, backoff_seconds=0.05, backoff_cap_seconds=0.2)


class Served:
    """An API at a fixed address that a test may stop and start."""

    def __init__(self, settings: Settings, stack: ExitStack) -> None:
        self.settings = settings.model_copy(update={"port": free_port(), "publisher": QUICK})
        self.url = Api(self.settings, 0).url
        self.database = str(settings.database_url)
        self._stack = stack

    def start(self) -> None:
        self._stack.enter_context(part(self.settings, "serve"))
        wait_until(self._answers)

    def stop(self) -> None:
        self._stack.close()

    def publisher(self, **options: Any) -> Publisher:
        token = make_token(self.database, "events:publish")
        given = {"http": self.url, "token": token, "settings": self.settings, **options}
        return Publisher("http.test", **given)

    def client(self) -> httpx.AsyncClient:
        token = make_token(self.database, "events:publish")
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers)

    def outbox(self) -> int:
        return int(value(self.database, "SELECT count(*) FROM bus.outbox"))

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with ExitStack() as stack:
        yield Served(settings, stack)


async def test_many_events_are_committed_when_publish_returns(served: Served) -> None:
    served.start()
    async with served.publisher() as publisher:
        events = [{"type": KIND, "payload": {"n": n, "x": "y" * 700}} for n in range(1_500)]
        ids = await publisher.publish_many(events)
        assert served.outbox() == 1_500
        with pytest.raises(IdConflict, match=ids[0]):
            await publisher.publish(KIND, {"other": True}, id=ids[0])
    assert served.outbox() == 1_500


async def test_a_token_that_may_not_publish_is_told_to_the_caller(served: Served) -> None:
    served.start()
    reader = make_token(served.database, "events:read")
    for token, error in (("tri_wrong", Unauthenticated), (reader, Forbidden)):
        async with served.publisher(token=token) as publisher:
            with pytest.raises(error):
                await publisher.publish(KIND, {})
            with pytest.raises(error):
                await publisher.publish_many([{"type": KIND, "payload": {}}] * 3)
            assert (publisher.unsent, publisher.counters.refused) == (0, 4)
    assert served.outbox() == 0


async def test_an_api_stopped_and_started_while_publishing_loses_and_doubles_nothing(
    served: Served,
) -> None:
    ledger: Ledger = {}

    async def publish(publisher: Publisher, first: int, count: int) -> None:
        for n in range(first, first + count):
            ledger[await publisher.publish(KIND, {"n": n})] = digest({"n": n})

    async def there() -> bool:
        return log_count(served.database) >= len(ledger)

    served.start()
    with part(served.settings, "work", "relay,ingress"):
        async with served.publisher() as publisher:
            await publish(publisher, 0, 50)
            await asyncio.to_thread(served.stop)
            await publish(publisher, 50, 50)
            starting = asyncio.to_thread(served.start)
            await asyncio.gather(starting, publish(publisher, 100, 50))
        await until(there)
    check_ledger(served.database, ledger)


async def test_an_event_refused_after_an_outage_is_named_and_set_aside(
    served: Served, tmp_path: Path
) -> None:
    served.start()
    async with served.publisher() as publisher:
        await publisher.publish(KIND, {"n": 1}, id="taken")
    await asyncio.to_thread(served.stop)
    file = tmp_path / "unsent"
    with pytest.raises(Unsent, match=r"1 events were refused.*taken"):
        async with served.publisher(buffer=file) as publisher:
            for n in range(5):
                await publisher.publish(KIND, {"n": n})
            await publisher.publish(KIND, {"n": 2}, id="taken")
            for n in range(5):
                await publisher.publish(KIND, {"n": n})
            await asyncio.to_thread(served.start)
    assert served.outbox() == 11
    assert '"id":"taken"' in Path(f"{file}.refused").read_text()
    assert file.read_bytes() == b""


async def test_an_idempotency_key_makes_a_request_without_ids_safe_to_send_again(
    served: Served,
) -> None:
    served.start()
    events = [{"type": KIND, "source": "curl", "payload": {"n": n}} for n in range(3)]
    key = {"Idempotency-Key": "order 7"}
    async with served.client() as mine, served.client() as theirs:
        first = await mine.post("/v1/events", json=events, headers=key)
        assert [r["status"] for r in first.json()["results"]] == ["accepted"] * 3
        again = await mine.post("/v1/events", json=events, headers=key)
        assert [r["status"] for r in again.json()["results"]] == ["duplicate"] * 3
        assert [r["id"] for r in again.json()["results"]] == [
            r["id"] for r in first.json()["results"]
        ]
        other = await mine.post("/v1/events", json=events[::-1], headers=key)
        assert other.status_code == 409
        assert (await theirs.post("/v1/events", json=events, headers=key)).status_code == 202
        assert (await mine.post("/v1/events", json=events)).status_code == 202
        for bad in ("", "x" * 201, "a\tb"):
            refused = await mine.post("/v1/events", json=events, headers={"Idempotency-Key": bad})
            assert refused.status_code == 400
            assert "Idempotency-Key" in refused.json()["detail"]
    assert served.outbox() == 9
