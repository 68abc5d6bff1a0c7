"""Subscriptions over HTTP: the same promises through `next` and `ack`."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from tests.integration.test_subscriber import append, execute, take
from tests.support.database import value
from tests.support.parts import free_port, part
from tests.support.waiting import wait_until
from tristore import Subscriber, tokens
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.errors import EpochChanged, Forbidden, PositionGone, Unauthenticated

POSITION = "SELECT sequence FROM bus.cursors WHERE consumer = %s"


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    url = f"http://127.0.0.1:{settings.port}"
    with part(settings, "serve"):
        wait_until(lambda: healthy(url))
        yield url


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def here(settings: Settings) -> Settings:
    return settings.model_copy(update={"port": free_port()})


@pytest.fixture
def api(here: Settings) -> Iterator[str]:
    with serving(here) as url:
        yield url


async def token(settings: Settings, *scopes: str, **limits: Any) -> str:
    async with make_pool(str(settings.database_url), name="test") as pool:
        async with pool.connection() as conn:
            return await tokens.create(conn, "test", scopes or ["events:read"], **limits)


async def client(settings: Settings, url: str) -> httpx.AsyncClient:
    bearer = {"Authorization": f"Bearer {await token(settings)}"}
    return httpx.AsyncClient(base_url=f"{url}/v1/subscriptions", headers=bearer)


async def test_next_repeats_until_acknowledged_and_never_goes_back(
    api: str, settings: Settings
) -> None:
    await append(str(settings.database_url), 10)
    async with await client(settings, api) as http:
        page = (await http.get("/w/next", params={"limit": 4})).json()
        assert [item["ingressSequence"] for item in page["items"]] == [1, 2, 3, 4]
        assert page["sequence"] == 4
        assert (await http.get("/w/next", params={"limit": 4})).json() == page
        assert (await http.post("/w/ack", json={"sequence": 4})).json() == {"sequence": 4}
        assert (await http.post("/w/ack", json={"sequence": 2})).json() == {"sequence": 4}
        after = (await http.get("/w/next", params={"limit": 500})).json()
        assert [item["ingressSequence"] for item in after["items"]] == [5, 6, 7, 8, 9, 10]
        assert (await http.delete("/w")).status_code == 204
        assert (await http.get("/w/next", params={"limit": 4})).json() == page


async def test_a_long_poll_ends_with_the_first_wanted_event(api: str, settings: Settings) -> None:
    url = str(settings.database_url)
    await append(url, 3, "other.thing.made")
    params: dict[str, Any] = {"types": "orders.*,billing.invoice.sent", "wait": 20}
    async with await client(settings, api) as http:
        polls = [
            asyncio.create_task(http.get(f"/{name}/next", params=params, timeout=30))
            for name in ("a", "b")
        ]
        while value(url, "SELECT count(*) FROM bus.cursors") < 2:
            await asyncio.sleep(0.02)
        await append(url, 2, "other.thing.made")
        assert not any(poll.done() for poll in polls)
        await append(url, 1, "billing.invoice.sent")
        for poll in polls:
            page = (await poll).json()
            assert [item["ingressSequence"] for item in page["items"]] == [6]
            assert page["sequence"] == 6
        empty = await http.get("/c/next", params={"types": "orders.*", "wait": 0.1})
        assert empty.json() == {"items": [], "sequence": 6}
    assert value(url, POSITION, "c") == 6


BAD = [
    ("GET", "/w/next?limit=0", None, 422),
    ("GET", "/w/next?limit=x", None, 422),
    ("GET", "/w/next?wait=21", None, 422),
    ("GET", "/w/next?wait=nan", None, 422),
    ("GET", "/w/next?from=yesterday", None, 422),
    ("GET", "/w/next?types=%25", None, 422),
    ("GET", "/w/next?types=a'b", None, 422),
    ("GET", "/a%20b/next", None, 422),
    ("GET", f"/{'x' * 101}/next", None, 422),
    ("GET", "/tristore.metastore/next", None, 403),
    ("POST", "/tristore.metastore/ack", b'{"sequence":1}', 403),
    ("DELETE", "/tristore.metastore", None, 403),
    ("POST", "/known/ack", b'{"sequence":-1}', 422),
    ("POST", "/known/ack", b'{"sequence":9223372036854775808}', 422),
    ("POST", "/known/ack", b'{"sequence":"1"}', 422),
    ("POST", "/known/ack", b'{"sequence":true}', 422),
    ("POST", "/known/ack", b'{"sequence":1,"x":1}', 422),
    ("POST", "/known/ack", b'{"sequence":1,"\\ud800":1}', 422),
    ("POST", "/known/ack", b"[" * 900, 422),
    ("POST", "/known/ack", b"", 422),
    ("POST", "/known/ack", b"x" * 5000, 413),
    ("POST", "/known/ack", b'{"sequence":6}', 409),
    ("POST", "/unknown/ack", b'{"sequence":1}', 404),
    ("DELETE", "/unknown", None, 404),
]


async def test_bad_input_is_answered_with_a_problem_and_changes_nothing(
    api: str, settings: Settings
) -> None:
    url = str(settings.database_url)
    await append(url, 5)
    async with await client(settings, api) as http:
        await http.get("/known/next")
        for method, path, body, status in BAD:
            answer = await http.request(method, path, content=body)
            assert answer.status_code == status, (path, body, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["detail"]
    assert value(url, "SELECT array_agg(consumer || sequence) FROM bus.cursors") == ["known0"]


async def test_a_restored_log_and_a_gone_position_are_told_apart(
    api: str, settings: Settings
) -> None:
    url = str(settings.database_url)
    await append(url, 5)
    async with await client(settings, api) as http:
        await http.get("/w/next")
        execute(url, "DELETE FROM bus.workflow_events WHERE ingress_sequence < 4")
        execute(url, "UPDATE bus.ingress_head SET earliest = 4")
        gone = await http.get("/w/next")
        assert (gone.status_code, gone.json()["earliest"]) == (410, 4)
        subscriber = Subscriber("w", http=api, token=await token(settings))
        with pytest.raises(PositionGone, match="4"):
            await anext(subscriber)
        execute(url, "UPDATE bus.ingress_head SET epoch = gen_random_uuid()")
        assert (await http.get("/w/next")).status_code == 409
        with pytest.raises(EpochChanged, match="restored"):
            await anext(subscriber)
        await subscriber.forget()
        assert await take(subscriber, 2) == [4, 5]
        await subscriber.close()


async def test_who_may_not_read_events_may_not_subscribe(api: str, settings: Settings) -> None:
    refused = {
        "tri_wrong": Unauthenticated,
        await token(settings, "events:publish"): Forbidden,
        await token(settings, "events:read", mounts=["m"]): Forbidden,
    }
    for bearer, error in refused.items():
        async with Subscriber("w", http=api, token=bearer) as subscriber:
            with pytest.raises(error):
                await anext(subscriber)
    assert value(str(settings.database_url), "SELECT count(*) FROM bus.cursors") == 0


async def test_a_reader_outlives_the_api_and_skips_nothing(here: Settings) -> None:
    url = str(here.database_url)
    await append(url, 120)
    with ExitStack() as stack:
        address = stack.enter_context(serving(here))
        bearer = await token(here)
        async with Subscriber("w", http=address, token=bearer, batch=10) as subscriber:
            found = await take(subscriber, 55)
            await asyncio.to_thread(stack.close)
            stack.enter_context(serving(here))
            found += await take(subscriber, 65)
        assert found == list(range(1, 121))
    assert value(url, POSITION, "w") == 119


async def test_a_long_poll_of_a_stopping_api_is_told_to_ask_again(here: Settings) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(serving(here))
        async with await client(here, address) as http:
            poll = asyncio.create_task(http.get("/w/next", params={"wait": 20}, timeout=30))
            while not value(str(here.database_url), "SELECT count(*) FROM bus.cursors"):
                await asyncio.sleep(0.02)
            await asyncio.to_thread(stack.close)
            answer = await poll
    assert answer.status_code == 503
    assert "ask again" in answer.json()["detail"]


async def test_events_are_offered_as_cloudevents(api: str, settings: Settings) -> None:
    await append(str(settings.database_url), 2)
    async with await client(settings, api) as http:
        asked = {"Accept": "application/cloudevents-batch+json"}
        answer = await http.get("/w/next", headers=asked)
        assert answer.headers["content-type"] == "application/cloudevents-batch+json"
        assert answer.headers["x-sequence"] == "2"
        first = answer.json()[0]
        assert (first["specversion"], first["sequence"], first["data"]) == ("1.0", "1", {"n": 0})
