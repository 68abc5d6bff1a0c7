"""The API from outside: who gets in, what publishing answers, and what a socket is sent."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.database import value
from tests.support.parts import free_port, part
from tests.support.waiting import until, wait_until
from tristore import tokens
from tristore.config import Settings
from tristore.db.pool import make_pool


@pytest.fixture
def api(settings: Settings) -> Iterator[str]:
    """A running API process, relay and ingress; yields its URL."""
    settings = settings.model_copy(update={"port": free_port()})
    url = f"http://127.0.0.1:{settings.port}"
    with part(settings, "serve"), part(settings, "work", "relay,ingress"):
        wait_until(lambda: _ready(url))
        yield url


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


async def token(settings: Settings, *scopes: str) -> dict[str, str]:
    async with make_pool(str(settings.database_url), name="test") as pool:
        async with pool.connection() as conn:
            return {"Authorization": f"Bearer {await tokens.create(conn, 'test', scopes)}"}


def event(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"e-{number}",
        "type": "test.thing.made",
        "source": "curl",
        "payload": {"n": number},
        **changes,
    }


async def frames(socket: ClientConnection, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:
        frame = json.loads(await socket.recv())
        found += [frame] if frame["kind"] == "event" else []
    return found


async def test_only_health_answers_without_a_token(api: str) -> None:
    async with httpx.AsyncClient(base_url=api) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        for path in ("/", "/openapi.json", "/v1/events", "/nothing/healthz", "/docs"):
            refused = await client.get(path)
            assert refused.status_code == 401, path
            assert refused.headers["www-authenticate"].startswith("Bearer")
            assert refused.headers["content-type"] == "application/problem+json"
            assert refused.json()["requestId"]


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer null", "Basic dTpw", "Bearer tri_wrong"])
async def test_a_bad_token_is_refused_on_http_and_before_a_socket_opens(
    api: str, header: str
) -> None:
    headers = {"Authorization": header} if header else {}
    async with httpx.AsyncClient(base_url=api, headers=headers) as client:
        assert (await client.get("/openapi.json")).status_code == 401
    with pytest.raises(InvalidStatus) as refused:
        await connect(api.replace("http", "ws") + "/ws", additional_headers=headers)
    assert refused.value.response.status_code == 403


async def test_scopes_and_foreign_origins_are_enforced(api: str, settings: Settings) -> None:
    reader = await token(settings, "events:read")
    publisher = await token(settings, "events:publish")
    async with httpx.AsyncClient(base_url=api) as client:
        refused = await client.post("/v1/events", json=event(1), headers=reader)
        assert refused.status_code == 403
        assert "events:publish" in refused.json()["detail"]
        twice = [("Authorization", reader["Authorization"])] * 2
        assert (await client.get("/", headers=twice)).status_code == 400
    address = api.replace("http", "ws") + "/ws"
    evil = {**reader, "Origin": "https://evil.example"}
    for headers in (publisher, evil):
        with pytest.raises(InvalidStatus) as closed:
            await connect(address, additional_headers=headers)
        assert closed.value.response.status_code == 403
    assert value(str(settings.database_url), "SELECT count(*) FROM bus.outbox") == 0


async def test_a_published_event_reaches_a_filtered_reader_in_order(
    api: str, settings: Settings
) -> None:
    headers = await token(settings, "events:read", "events:publish")
    address = api.replace("http", "ws") + "/ws?type=test.*"
    async with (
        connect(address, additional_headers=headers) as socket,
        httpx.AsyncClient(base_url=api, headers=headers) as client,
    ):
        assert json.loads(await socket.recv()) == {"kind": "position", "sequence": 0}
        other = event(0, type="other.thing.made")
        sent = await client.post(
            "/v1/events",
            json=[other, *map(event, range(1, 51))],
            headers={"X-Correlation-Id": "run-7"},
        )
        assert sent.status_code == 202
        assert {r["status"] for r in sent.json()["results"]} == {"accepted"}
        assert sent.headers["x-correlation-id"] == "run-7"
        got = await frames(socket, 50)
    assert [f["event"]["id"] for f in got] == [f"e-{n}" for n in range(1, 51)]
    assert [f["sequence"] for f in got] == list(range(2, 52))
    assert got[0]["event"]["correlationId"] == "run-7"
    async with connect(address + "&since=40", additional_headers=headers) as socket:
        assert [f["sequence"] for f in await frames(socket, 11)] == list(range(41, 52))


async def test_a_reader_cannot_start_ahead_of_the_log_or_before_what_is_kept(
    api: str, settings: Settings
) -> None:
    headers = await token(settings, "events:read")
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute("UPDATE bus.ingress_head SET last = 100, earliest = 51")
    for since, code, reason in ((101, 4409, "last=100"), (49, 4410, "earliest=51")):
        address = f"{api.replace('http', 'ws')}/ws?since={since}"
        async with connect(address, additional_headers=headers) as socket:
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (code, reason)


async def test_publishing_again_is_a_duplicate_and_another_body_a_conflict(
    api: str, settings: Settings
) -> None:
    headers = await token(settings, "events:publish")
    async with httpx.AsyncClient(base_url=api, headers=headers) as client:
        assert (await client.post("/v1/events", json=event(1))).status_code == 202

        async def sequence() -> Any:
            again = await client.post("/v1/events", json=event(1))
            (result,) = again.json()["results"]
            assert result["status"] == "duplicate"
            return result.get("sequence")

        assert await until(sequence) == 1
        clash = await client.post("/v1/events", json=[event(2), event(1, payload={})])
        assert clash.status_code == 409
        assert "e-1" in clash.json()["detail"]
    assert value(str(settings.database_url), "SELECT count(*) FROM bus.outbox") == 1


async def test_every_violation_of_every_event_is_listed_and_nothing_is_kept(
    api: str, settings: Settings
) -> None:
    headers = await token(settings, "events:publish")
    bad = [event(1), event(2, type="Wrong", source=""), event(3, payload=[1])]
    async with httpx.AsyncClient(base_url=api, headers=headers) as client:
        refused = await client.post("/v1/events", json=bad)
        assert refused.status_code == 422
        paths = [e["path"] for e in refused.json()["errors"]]
        assert paths == ["/1/type", "/1/source", "/2/payload"]
        for body in (b"", b"[", b'{"a":1,"a":2}', b"[]", b"[" * 5000, b'"\\ud800"', b"\xff"):
            answer = await client.post("/v1/events", content=body)
            assert answer.status_code in (400, 422), body
            assert answer.headers["content-type"] == "application/problem+json"
        assert (await client.post("/v1/events", content=b"x" * 2_000_000)).status_code == 413
    assert value(str(settings.database_url), "SELECT count(*) FROM bus.outbox") == 0
