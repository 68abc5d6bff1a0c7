"""Outbox to log, the stores' own path: a backlog of committed rows until all are in the log."""

import asyncio

from bench.bare_insert import bare_insert, events
from bench.figure import Figure
from bench.servers import part, servers, stored, wait_until
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.events import outbox


def run(scale: float = 1.0) -> list[Figure]:
    count = int(50_000 * scale)
    with servers() as (settings, _):
        limit = bare_insert(str(settings.database_url), count)
        asyncio.run(fill(settings, count))
        with part(settings, "work", "ingress"):
            wait_until(lambda: stored(settings) == 0)
            with part(settings, "work", "relay"):
                first = wait_until(lambda: stored(settings) > 0)
                seconds = wait_until(lambda: stored(settings) == count) - first
    name = f"outbox to log, {count:,} rows"
    return [Figure(name, count / seconds, "events/s", limit, "batched INSERT", "5,000/s")]


async def fill(settings: Settings, count: int) -> None:
    async with make_pool(str(settings.database_url), name="bench", max_size=1) as pool:
        made = events(count)
        async with pool.connection() as conn:
            for start in range(0, count, 1000):
                async with conn.transaction():
                    await outbox.offer(conn, made[start : start + 1000])
