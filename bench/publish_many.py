"""Accepted events per second until durable in the log, by `publish_many`."""

import asyncio
import time
from typing import Any

from bench.bare_insert import bare_insert, bare_values, events
from bench.figure import Figure
from bench.servers import part, servers, stored, wait_until
from tristore import Publisher
from tristore.config import Settings


def run(scale: float = 1.0) -> list[Figure]:
    count = int(100_000 * scale)
    with servers() as (settings, _):
        one_by_one = bare_insert(str(settings.database_url), count)
        together = bare_values(str(settings.database_url), count)
        warm, made = given(1000), given(count)
        with part(settings, "work", "ingress"):
            asyncio.run(publish(settings, warm))
            wait_until(lambda: stored(settings) == 1000)
            started = time.perf_counter()
            asyncio.run(publish(settings, made))
            seconds = wait_until(lambda: stored(settings) == count + 1000) - started
    name, unit = f"{count:,} events by publish_many until in the log", "events/s"
    rate, target = count / seconds, "12,000/s and 0.60"
    executemany, values = "batched INSERT, executemany in pipelines", "INSERTs of 500 rows each"
    return [
        Figure(name, rate, unit, one_by_one, executemany, target),
        Figure(name, rate, unit, together, values, target),
    ]


def given(count: int) -> list[dict[str, Any]]:
    """What a program hands over; making it is not the bus's work."""
    return [{"type": e.type, "payload": e.payload, "id": e.id} for e in events(count)]


async def publish(settings: Settings, made: list[dict[str, Any]]) -> None:
    async with Publisher(source="bench.publisher", url=settings.redis_url) as bus:
        await bus.publish_many(made)
