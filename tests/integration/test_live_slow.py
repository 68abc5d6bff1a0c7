"""A reader that stops reading: closed with its position, while the others go on undisturbed."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.support.api import Api, own_api
from tests.support.waiting import until

EVENTS = 60
FILLING = "x" * 100_000
# A client that does not read hears no pong either, and would hang up by itself.
SILENT: dict[str, Any] = {"ping_interval": None, "open_timeout": 60}


@pytest.fixture
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    short = {"TRISTORE_HTTP__SLOW_SECONDS": "2", "TRISTORE_HTTP__UNREAD_SECONDS": "2"}
    with own_api(server_url, redis_url, workers="relay,ingress", **short) as api:
        yield api


async def publish(client: AsyncClient) -> None:
    for start in range(0, EVENTS, 5):
        events = [
            {"type": "slow.thing.made", "source": "test", "payload": {"n": n, "filling": FILLING}}
            for n in range(start, start + 5)
        ]
        assert (await client.post("/v1/events", json=events)).status_code == 202


async def read(socket: ClientConnection, last: int) -> list[int]:
    """Sequence numbers of events, until one is the last or the socket is closed."""
    seen: list[int] = []
    try:
        while not seen or seen[-1] < last:
            frame: dict[str, Any] = json.loads(await socket.recv())
            seen += [frame["sequence"]] if frame["kind"] == "event" else []
    except ConnectionClosed:
        pass
    return seen


async def readers(client: AsyncClient) -> int:
    page = (await client.get("/metrics")).text
    (line,) = (x for x in page.splitlines() if x.startswith("tristore_live_readers "))
    return int(line.split()[1])


async def test_a_stopped_reader_is_closed_with_its_position_and_misses_nothing(api: Api) -> None:
    headers = api.bearer("events:read", "events:publish")
    async with (
        AsyncClient(base_url=api.url, headers=headers, timeout=60) as client,
        connect(f"{api.ws}/ws?since=0", additional_headers=headers, **SILENT) as stopped,
        connect(f"{api.ws}/ws?since=0", additional_headers=headers, **SILENT) as healthy,
    ):
        stopped.transport.pause_reading()
        reading = asyncio.create_task(read(healthy, EVENTS))
        await publish(client)
        assert await reading == list(range(1, EVENTS + 1))
        await until(lambda: _let_go(api, stopped))
        stopped.transport.resume_reading()
        seen = await read(stopped, EVENTS)
        goodbye = stopped.protocol.close_rcvd
        assert goodbye is not None
        assert (goodbye.code, goodbye.reason) == (4408, f"resume since={seen[-1]}")
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) < EVENTS  # else it was not slow, and nothing was shown
        address = f"{api.ws}/ws?since={seen[-1]}"
        async with connect(address, additional_headers=headers) as again:
            assert seen + await read(again, EVENTS) == list(range(1, EVENTS + 1))


async def _let_go(api: Api, socket: ClientConnection) -> bool:
    """The server holds no connection any more, though its client has not stirred."""
    port = socket.local_address[1]
    held = psutil.Process(api.pid).net_connections("tcp")
    return all(not c.raddr or c.raddr.port != port for c in held)


async def test_many_stopped_readers_cost_little_memory(api: Api) -> None:
    many = 20
    headers = api.bearer("events:read", "events:publish")
    process = psutil.Process(api.pid)
    async with AsyncClient(base_url=api.url, headers=headers, timeout=60) as client:
        await publish(client)
        before = process.memory_info().rss
        address = f"{api.ws}/ws?since=0"
        sockets = [
            await connect(address, additional_headers=headers, **SILENT) for _ in range(many)
        ]
        for socket in sockets:
            socket.transport.pause_reading()
        peak = 0
        while await readers(client):
            peak = max(peak, process.memory_info().rss - before)
        # A page and a buffer each, and what the tail keeps for all of them together.
        assert peak < (many + 20) * 2**20
        for socket in sockets:
            socket.transport.abort()


async def test_a_stream_nobody_reads_is_cut(api: Api) -> None:
    headers = api.bearer("events:read", "events:publish")
    async with AsyncClient(base_url=api.url, headers=headers, timeout=60) as client:
        await publish(client)
        async with client.stream("GET", "/v1/events/stream?since=0") as response:
            await until(lambda: _nobody_left(client))
            with pytest.raises(httpx.TransportError):
                async for _ in response.aiter_bytes():
                    pass


async def _nobody_left(client: AsyncClient) -> bool:
    return await readers(client) == 0
