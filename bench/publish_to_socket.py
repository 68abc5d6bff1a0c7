"""From publish to WebSocket frame at a steady 50 events per second."""

import asyncio
import json
import time

import httpx
from redis.asyncio import Redis
from websockets.asyncio.client import connect

from bench.figure import Figure
from bench.servers import part, percentile, servers, wait_until
from tristore import Publisher, tokens
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.local.port import pick

RATE = 50


def run(scale: float = 1.0) -> list[Figure]:
    count = max(100, int(1000 * scale))
    with servers() as (settings, _):
        settings = settings.model_copy(update={"port": pick()})
        with part(settings, "serve"), part(settings, "work", "ingress"):
            delays = asyncio.run(measure(settings, count))
            bare = asyncio.run(bare_way(settings, count // 4))
    p50, p99 = percentile(delays, 0.5), percentile(delays, 0.99)
    limit, unit = "Redis round trip and one commit, p50", "ms"
    return [
        Figure("publish to WebSocket frame, p50", p50, unit, bare, limit, "5 ms"),
        Figure("publish to WebSocket frame, p99", p99, unit, bare, limit, "20 ms"),
    ]


async def measure(settings: Settings, count: int) -> list[float]:
    async with make_pool(str(settings.database_url), name="bench", max_size=1) as pool:
        async with pool.connection() as conn:
            token = await tokens.create(conn, "bench", ["events:read"])
    await asyncio.to_thread(wait_until, lambda: _answers(settings))
    headers = {"Authorization": f"Bearer {token}"}
    address = f"ws://127.0.0.1:{settings.port}/ws"
    async with (
        connect(address, additional_headers=headers) as socket,
        Publisher(source="bench", url=settings.redis_url) as bus,
    ):
        sending = asyncio.create_task(_send(bus, count + RATE))
        delays: list[float] = []
        while len(delays) < count + RATE:
            frame = json.loads(await socket.recv())
            if frame["kind"] == "event":
                began = frame["event"]["payload"]["began"]
                delays.append((time.perf_counter() - began) * 1000)
        await sending
    return delays[RATE:]  # the first second warms up


async def _send(bus: Publisher, count: int) -> None:
    start = time.perf_counter()
    for number in range(count):
        await asyncio.sleep(max(0.0, start + number / RATE - time.perf_counter()))
        await bus.publish("bench.thing.made", {"began": time.perf_counter()})


async def bare_way(settings: Settings, count: int) -> float:
    """A list push and pop in Redis, and a one-row commit: what the way costs at the least."""
    client = Redis.from_url(str(settings.redis_url))
    delays = []
    async with make_pool(str(settings.database_url), name="bare", max_size=1) as pool:
        async with pool.connection() as conn:
            await conn.execute("CREATE TABLE IF NOT EXISTS bare (n int)")
            for number in range(count):
                began = time.perf_counter()
                await client.lpush("bare", number)
                await client.rpop("bare")
                await conn.execute("INSERT INTO bare VALUES (%s)", [number])
                delays.append((time.perf_counter() - began) * 1000)
                await asyncio.sleep(0.005)
    await client.aclose()
    return percentile(delays, 0.5)


def _answers(settings: Settings) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{settings.port}/readyz").status_code == 200
    except httpx.TransportError:
        return False
