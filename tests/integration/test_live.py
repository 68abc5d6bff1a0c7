"""Live readers over WebSocket and SSE: what they are sent, and how they are turned away."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import httpx
import psycopg
import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.api import Api, own_api
from tests.support.waiting import until

SHORT = {"TRISTORE_HTTP__RECHECK_SECONDS": "0.3", "TRISTORE_HTTP__SOCKETS_PER_TOKEN": "3"}


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress", **SHORT) as api:
        yield api


@pytest.fixture
async def client(api: Api) -> AsyncIterator[AsyncClient]:
    headers = api.bearer("events:read", "events:publish", "events:admin")
    async with AsyncClient(base_url=api.url, headers=headers, timeout=60) as client:
        yield client


async def publish(client: AsyncClient, *types: str) -> list[str]:
    """Publishes one event of each type and waits until all are in the log."""
    events = [{"type": type, "source": "test", "payload": {"n": n}} for n, type in enumerate(types)]
    answer = await client.post("/v1/events", json=events)
    ids = [result["id"] for result in answer.json()["results"]]

    async def stored() -> bool:
        named = [{**event, "id": id} for event, id in zip(events, ids, strict=True)]
        answers = [await client.post("/v1/events", json=event) for event in named]
        return all("sequence" in a.json()["results"][0] for a in answers)

    await until(stored)
    return ids


def auth(client: AsyncClient) -> dict[str, str]:
    return {"Authorization": client.headers["authorization"]}


async def receive(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def closed(socket: ClientConnection) -> tuple[int, str]:
    with pytest.raises(ConnectionClosed) as ended:
        while True:
            await socket.recv()
    assert ended.value.rcvd is not None
    return ended.value.rcvd.code, ended.value.rcvd.reason


async def sse(response: httpx.Response) -> AsyncIterator[dict[str, str]]:
    """The messages of an event stream, field by field."""
    message: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            yield message
            message = {}
        else:
            name, _, text = line.partition(": ")
            message[name] = text


async def test_both_streams_carry_the_same_frames(api: Api, client: AsyncClient) -> None:
    async with connect(f"{api.ws}/ws?type=live.*", additional_headers=auth(client)) as socket:
        start = await receive(socket)
        assert start["kind"] == "position"
        async with client.stream("GET", "/v1/events/stream?type=live.*") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            messages = sse(response)
            assert json.loads((await anext(messages))["data"]) == start
            ids = await publish(client, "live.a.made", "other.a.made", "live.b.made")
            for wanted in (ids[0], ids[2]):
                frame = await receive(socket)
                assert frame["kind"] == "event"
                assert frame["event"]["id"] == wanted
                assert frame["event"]["ingressSequence"] == frame["sequence"]
                message = await anext(messages)
                assert json.loads(message["data"]) == frame
                assert message["id"] == str(frame["sequence"])
                assert message["event"] == "event"


async def test_a_reader_whose_filter_takes_nothing_still_learns_its_position(
    api: Api, client: AsyncClient
) -> None:
    address = f"{api.ws}/ws?type=never.happens.here"
    async with connect(address, additional_headers=auth(client)) as socket:
        start = (await receive(socket))["sequence"]
        await publish(client, "live.a.made", "live.a.made")
        frame = await receive(socket)
        while frame["sequence"] < start + 2:
            assert frame["kind"] == "position"
            frame = await receive(socket)
    async with connect(f"{address}&since={start + 2}", additional_headers=auth(client)) as socket:
        assert await receive(socket) == {"kind": "position", "sequence": start + 2}


async def test_an_event_stream_resumes_by_last_event_id(api: Api, client: AsyncClient) -> None:
    ids = await publish(client, *["resume.a.made"] * 5)
    seen: list[str] = []
    last = "0"
    for _ in range(2):  # two connections, the second where the first was cut
        headers = {"Last-Event-ID": last}
        path = "/v1/events/stream?type=resume.*"
        async with client.stream("GET", path, headers=headers) as response:
            async for message in sse(response):
                if message["event"] == "event":
                    seen.append(json.loads(message["data"])["event"]["id"])
                    last = message["id"]
                    if len(seen) in (2, 5):
                        break
    assert seen == ids


@pytest.mark.parametrize("since", ["abc", "-1", str(2**63), "1.5", ""])
async def test_a_position_that_is_none_is_refused_before_anything_opens(
    api: Api, client: AsyncClient, since: str
) -> None:
    answer = await client.get("/v1/events/stream", params={"since": since})
    assert answer.status_code == 422
    answer = await client.get("/v1/events/stream", headers={"Last-Event-ID": since or "x"})
    assert answer.status_code == 422
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{api.ws}/ws?since={since}", additional_headers=auth(client))
    assert refused.value.response.status_code == 422
    assert json.loads(refused.value.response.body or b"")["errors"][0]["path"] == "query/since"


async def test_a_type_filter_that_means_nothing_is_refused(api: Api, client: AsyncClient) -> None:
    for pattern in ("A.B", "a*", "*.*", "a b", "a\n", "(a+)+", "x" * 300):
        answer = await client.get("/v1/events/stream", params={"type": pattern})
        assert answer.status_code == 422, pattern
    many = [("type", f"a.b.c{n}") for n in range(51)]
    assert (await client.get("/v1/events/stream", params=many)).status_code == 422


async def test_positions_ahead_and_gone(server_url: str, redis_url: str) -> None:
    with own_api(server_url, redis_url) as api:
        headers = api.bearer("events:read")
        with psycopg.connect(api.database, autocommit=True) as conn:
            conn.execute("UPDATE bus.ingress_head SET last = 100, earliest = 51")
        async with AsyncClient(base_url=api.url, headers=headers) as client:
            cases = ((101, 4409, "last=100", 409), (49, 4410, "earliest=51", 410))
            for since, code, reason, status in cases:
                address = f"{api.ws}/ws?since={since}"
                async with connect(address, additional_headers=headers) as socket:
                    assert await closed(socket) == (code, reason)
                answer = await client.get("/v1/events/stream", params={"since": since})
                assert answer.status_code == status
            assert answer.json()["earliest"] == 51


async def test_a_token_that_ends_ends_its_streams(api: Api) -> None:
    headers = api.bearer("events:read")
    async with AsyncClient(base_url=api.url, headers=headers, timeout=60) as client:
        async with (
            connect(f"{api.ws}/ws", additional_headers=headers) as socket,
            client.stream("GET", "/v1/events/stream") as response,
        ):
            await receive(socket)
            messages = sse(response)
            await anext(messages)
            with psycopg.connect(api.database, autocommit=True) as conn:
                conn.execute("UPDATE bus.tokens SET revoked_at = now() WHERE name = 'test'")
            assert (await closed(socket))[0] == 4401
            assert [m async for m in messages if m.get("event") == "event"] == []
            again = await until(lambda: _refused(client))
            assert again.status_code == 401


async def _refused(client: AsyncClient) -> httpx.Response | None:
    async with client.stream("GET", "/v1/events/stream") as response:
        return response if response.status_code != 200 else None


async def test_one_token_holds_only_so_many_streams(api: Api) -> None:
    headers = api.bearer("events:read")
    async with AsyncClient(base_url=api.url, headers=headers, timeout=60) as client:
        async with (
            connect(f"{api.ws}/ws", additional_headers=headers) as first,
            connect(f"{api.ws}/ws", additional_headers=headers) as second,
            client.stream("GET", "/v1/events/stream") as third,
        ):
            assert third.status_code == 200
            await receive(first)
            await receive(second)
            async with connect(f"{api.ws}/ws", additional_headers=headers) as fourth:
                code, reason = await closed(fourth)
                assert (code, "3 live streams" in reason) == (1008, True)
            assert (await client.get("/v1/events/stream")).status_code == 429
            await first.close()

            async def room() -> bool:
                async with connect(f"{api.ws}/ws", additional_headers=headers) as again:
                    return (await receive(again))["kind"] == "position"

            assert await until(lambda: _tried(room))


async def _tried(attempt: Any) -> bool:
    try:
        return bool(await attempt())
    except ConnectionClosed:
        return False


async def test_a_limited_token_gets_no_feed(api: Api) -> None:
    for limits in ({"namespaces": ["a"]}, {"mounts": ["m"]}, {"datasets": ["d"]}):
        headers = api.bearer("events:read", **limits)
        async with AsyncClient(base_url=api.url, headers=headers) as client:
            assert (await client.get("/v1/events/stream")).status_code == 403
            assert (await client.post("/v1/tickets")).status_code == 403
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{api.ws}/ws", additional_headers=headers)
        assert refused.value.response.status_code == 403


async def test_a_client_that_talks_too_much_or_too_big_is_closed(api: Api) -> None:
    headers = api.bearer("events:read")
    async with connect(f"{api.ws}/ws", additional_headers=headers) as socket:
        with suppress(ConnectionClosed):
            for _ in range(10_000):
                await socket.send("subscribe")
        assert (await closed(socket))[0] == 1008
    async with connect(f"{api.ws}/ws", additional_headers=headers) as socket:
        await receive(socket)
        await socket.send("x" * 65_536)
        with suppress(ConnectionClosed):
            await socket.send("x" * 15 * 2**20)
        assert (await closed(socket))[0] == 1009
