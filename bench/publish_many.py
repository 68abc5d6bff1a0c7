"""Accepted events per second until durable in the log, by `publish_many`."""

import asyncio
import time

from bench.bare_insert import bare_insert, events
from bench.figure import Figure
from bench.servers import part, servers, stored, wait_until
from tristore import Publisher
from tristore.config import Settings


def run(scale: float = 1.0) -> list[Figure]:
    count = int(100_000 * scale)
    with servers() as (settings, _):
        limit = bare_insert(str(settings.database_url), count)
        with part(settings, "work", "ingress"):
            asyncio.run(publish(settings, 1000))
            wait_until(lambda: stored(settings) == 1000)
            started = time.perf_counter()
            asyncio.run(publish(settings, count))
            seconds = wait_until(lambda: stored(settings) == count + 1000) - started
    name = f"{count:,} events by publish_many until in the log"
    target = "12,000/s and 0.60 of batched INSERT"
    return [Figure(name, count / seconds, "events/s", limit, "batched INSERT", target)]


async def publish(settings: Settings, count: int) -> None:
    made = [
        {"type": e.type, "payload": e.payload, "id": e.id, "occurred_at": e.occurred_at}
        for e in events(count)
    ]
    async with Publisher(source="bench.publisher", url=settings.redis_url) as bus:
        await bus.publish_many(made)
