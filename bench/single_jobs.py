"""One BullMQ job per event: per ingress process, and with a second one."""

import asyncio
import time
from contextlib import ExitStack

import psycopg
from bullmq import Job, Queue, Worker
from redis.asyncio import Redis

from bench.bare_insert import events
from bench.figure import Figure
from bench.servers import part, servers, stored, wait_until
from tristore.config import Settings

# A process that has nothing to do holds one connection.
_CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tristore-ingress'"


def run(scale: float = 1.0) -> list[Figure]:
    count = int(8_000 * scale)
    with servers() as (settings, _):
        limit = asyncio.run(bare_worker(str(settings.redis_url), count))
        one = drain(settings, 2 * count, 1)
        two = drain(settings, 2 * count, 2)
    what, unit = "single-event jobs", "events/s"
    return [
        Figure(f"{what}, one ingress process", one, unit, limit, "no-op bullmq worker", "1,000/s"),
        Figure(f"{what}, two ingress processes", two, unit, one, "one process", "1.3 x"),
    ]


def drain(settings: Settings, count: int, processes: int) -> float:
    """From the first stored to the last, with the queue filled and every process up before: one
    that still starts takes the processor from the others."""
    before = stored(settings)
    asyncio.run(fill(settings, count))
    with ExitStack() as stack:
        for _ in range(processes):
            stack.enter_context(part(settings, "work", "ingress"))
        wait_until(lambda: connected(settings) >= processes)
        asyncio.run(release(settings))
        wait_until(lambda: stored(settings) > before + count // 10)
        first, started = stored(settings), time.perf_counter()
        ended = wait_until(lambda: stored(settings) == before + count)
    return (before + count - first) / (ended - started)


def connected(settings: Settings) -> int:
    with psycopg.connect(str(settings.database_url)) as conn:
        row = conn.execute(_CONNECTED).fetchone()
    return int(row[0]) if row else 0


async def fill(settings: Settings, count: int) -> None:
    """The queue is paused until `release`."""
    queue = Queue(settings.events.queue, {"connection": settings.redis_url})
    await queue.pause()
    jobs = [{"name": "event", "data": event.to_json()} for event in events(count)]
    for start in range(0, count, 1000):
        await queue.addBulk(jobs[start : start + 1000])
    await queue.close()


async def release(settings: Settings) -> None:
    queue = Queue(settings.events.queue, {"connection": settings.redis_url})
    await queue.resume()
    await queue.close()


async def bare_worker(redis_url: str, count: int) -> float:
    """The library itself, doing nothing with each job."""
    queue = Queue("bare", {"connection": redis_url})
    for start in range(0, count, 1000):
        size = min(1000, count - start)
        await queue.addBulk([{"name": "event", "data": {"n": n}} for n in range(size)])
    done = asyncio.Event()
    left = count

    async def process(job: Job, token: str) -> None:
        nonlocal left
        left -= 1
        if not left:
            done.set()

    started = time.perf_counter()
    client = Redis.from_url(redis_url, decode_responses=True)
    worker = Worker("bare", process, {"connection": client, "removeOnComplete": {"count": 0}})
    await done.wait()
    seconds = time.perf_counter() - started
    await worker.close()
    await queue.close()
    return count / seconds
