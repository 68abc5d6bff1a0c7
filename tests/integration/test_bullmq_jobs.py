"""Jobs are taken in as few words as can be, and none is left lying for want of a word."""

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from redis.asyncio import Redis

from tests.support.waiting import until
from tristore.events import bullmq_jobs
from tristore.events.bullmq_jobs import BullJobs, Taken
from tristore.events.queue import EventQueue, connect


@pytest.fixture
async def queue(redis_url: str, queue_name: str) -> AsyncIterator[EventQueue]:
    queue = EventQueue(redis_url, queue_name)
    yield queue
    await queue.close()


@pytest.fixture
async def jobs(
    redis_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[BullJobs]:
    monkeypatch.setattr(bullmq_jobs, "connect", lambda url, timeout: connect(url, timeout=300))
    jobs = BullJobs(redis_url, queue_name, uuid4().hex, 30)
    yield jobs
    await jobs.close()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url, decode_responses=True) as redis:
        yield redis


async def add(queue: EventQueue, *job_ids: str) -> None:
    for job_id in job_ids:
        await queue.add_events([b"{}"], job_id=job_id)


def ids(taken: Taken) -> list[str]:
    return [job.id for job in taken.jobs]


async def test_the_last_job_leaves_no_word_behind(
    jobs: BullJobs, queue: EventQueue, redis: Redis, queue_name: str
) -> None:
    """A worker that waits again is not woken for nothing; with jobs left, one is."""
    await add(queue, "a", "b", "c")
    first = await jobs.wait_and_take()
    assert (ids(first), first.more) == (["a"], True)
    assert await redis.exists(f"bull:{queue_name}:marker")
    rest = await jobs.take(100)
    assert (ids(rest), rest.more) == (["b", "c"], False)
    assert not await redis.exists(f"bull:{queue_name}:marker")
    assert (await jobs.take(100)).more is False


async def test_a_job_comes_to_whoever_waits(
    jobs: BullJobs, queue: EventQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bullmq_jobs, "_WAIT_SECONDS", 120.0)
    waiting = asyncio.create_task(jobs.wait_and_take())
    await add(queue, "a")
    assert ids(await asyncio.wait_for(waiting, 60)) == ["a"]


async def test_a_wait_can_be_ended(
    jobs: BullJobs, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bullmq_jobs, "_WAIT_SECONDS", 120.0)
    waiting = asyncio.create_task(jobs.wait_and_take())
    await until(lambda: someone_waits(redis))
    await jobs.stop_waiting()
    assert ids(await asyncio.wait_for(waiting, 60)) == []


async def test_a_worker_that_died_waiting_takes_nothing(
    jobs: BullJobs,
    queue: EventQueue,
    redis: Redis,
    redis_url: str,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The take it has sent ahead goes with its connection."""
    monkeypatch.setattr(bullmq_jobs, "_WAIT_SECONDS", 120.0)
    dying = BullJobs(redis_url, queue_name, uuid4().hex, 30)
    waiting = asyncio.create_task(dying.wait_and_take())
    await until(lambda: someone_waits(redis))
    await dying.close()
    await asyncio.gather(waiting, return_exceptions=True)
    await until(lambda: nobody_waits(redis))
    await add(queue, "a")
    (taken,) = (await jobs.take(100)).jobs
    assert (taken.id, taken.stalled) == ("a", 0)


async def nobody_waits(redis: Redis) -> bool:
    return not await someone_waits(redis)


async def someone_waits(redis: Redis) -> bool:
    return bool((await redis.info("clients"))["blocked_clients"])


async def test_a_redis_that_forgot_the_scripts_is_told_them_again(
    jobs: BullJobs, queue: EventQueue, redis: Redis
) -> None:
    await add(queue, "a", "b")
    await redis.script_flush()
    assert ids(await jobs.wait_and_take()) == ["a"]
    assert ids(await jobs.wait_and_take()) == ["b"]


async def test_a_paused_queue_is_left_alone(
    jobs: BullJobs, queue: EventQueue, redis: Redis, queue_name: str
) -> None:
    await add(queue, "a")
    await redis.hset(f"bull:{queue_name}:meta", "paused", "1")
    taken = await jobs.take(100)
    assert (ids(taken), taken.more) == ([], False)
    assert not await redis.exists(f"bull:{queue_name}:marker")  # or everybody would spin
    await redis.hdel(f"bull:{queue_name}:meta", "paused")
    assert ids(await jobs.take(100)) == ["a"]
