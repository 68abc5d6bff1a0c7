"""What `outbox.add` adds to a store's transaction, with Redis there and with Redis stopped."""

import asyncio
import time

from bench.figure import Figure
from bench.servers import part, percentile, servers
from tristore.config import Settings
from tristore.db.pool import Connection, make_pool
from tristore.events import outbox
from tristore.events.payloads import MetastoreRecordCreated

RECORD = MetastoreRecordCreated(
    namespace="bench", key="k", version=1, tags=("raw",), actor="bench", changed=("tags",)
)


def run(scale: float = 1.0) -> list[Figure]:
    count = max(200, int(2000 * scale))
    figures = []
    with servers() as (settings, redis), part(settings, "work", "relay,ingress"):
        for state in ("Redis there", "Redis stopped"):
            if state == "Redis stopped":
                redis.stop()
            added, bare = asyncio.run(measure(settings, count))
            for share, target in ((0.5, "1 ms"), (0.99, "3 ms")):
                name = f"outbox.add in a transaction, {state}, p{share * 100:.0f}"
                value, limit = percentile(added, share), percentile(bare, share)
                figures.append(Figure(name, value, "ms", limit, "one bare INSERT", target))
    return figures


async def measure(settings: Settings, count: int) -> tuple[list[float], list[float]]:
    """The statement alone, inside a transaction that commits after it."""
    added, bare = [], []
    async with make_pool(str(settings.database_url), name="bench", max_size=1) as pool:
        async with pool.connection() as conn:
            await conn.execute("CREATE TABLE IF NOT EXISTS bare (a text, b text, c text)")
            for _ in range(count):
                async with conn.transaction():
                    bare.append(await timed(insert(conn)))
                async with conn.transaction():
                    added.append(await timed(outbox.add(conn, RECORD, source="bench")))
    return added, bare


async def insert(conn: Connection) -> None:
    await conn.execute("INSERT INTO bare VALUES (%s, %s, %s)", ["id", "source", "x" * 300])


async def timed(work) -> float:  # type: ignore[no-untyped-def]
    began = time.perf_counter()
    await work
    return (time.perf_counter() - began) * 1000
