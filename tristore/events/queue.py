"""The door to BullMQ on Redis: jobs in, raw jobs out, and the live channels.

BullMQ's port parses a job's data while fetching it and loops for ever on what it cannot parse.
Here the job is handed on as the raw string from its hash; `wire` reads it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bullmq import Job, Queue, Worker
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tristore.errors import StartRefused, Unavailable

_log = logging.getLogger(__name__)

ADD_TIMEOUT_SECONDS = 5.0
CHANNEL = "tristore:events:"
_CLOSE_SECONDS = 2.0
# BullMQ would move a job to its `failed` set after a few stalls; the worker decides instead.
_NEVER = 1_000_000


@dataclass(frozen=True, slots=True)
class RawJob:
    """A job as it stands in Redis. `stalled` counts the workers that died holding it."""

    id: str
    name: str
    data: bytes
    timestamp_ms: int
    stalled: int


Handler = Callable[[Sequence[RawJob]], Awaitable[None]]


class EventQueue:
    """Sends jobs; every call ends soon, with `Unavailable` when Redis is away."""

    def __init__(self, redis_url: str, name: str) -> None:
        self._redis = _connect(redis_url, timeout=ADD_TIMEOUT_SECONDS)
        self._queue = Queue(name, {"connection": self._redis})

    async def close(self) -> None:
        await self._redis.aclose()

    async def check(self) -> None:
        """Refuses a Redis that may throw jobs away."""
        memory = await self._ask(self._redis.info("memory"))
        policy = memory.get("maxmemory_policy")
        if policy != "noeviction":
            raise StartRefused(
                f"Redis has maxmemory-policy {policy} and may drop queued events; "
                "set it to noeviction (CONFIG SET maxmemory-policy noeviction)"
            )

    async def ping(self) -> None:
        await self._ask(self._redis.ping())

    async def add_events(self, events: Sequence[Mapping[str, Any]], *, job_id: str) -> None:
        """One job for many events. After a time-out the job may still have been stored."""
        options = {"jobId": job_id, "removeOnComplete": True, "removeOnFail": False}
        await self._ask(self._queue.add("events", {"events": list(events)}, options))

    async def announce(self, messages: Iterable[tuple[str, bytes]]) -> None:
        """Tells live listeners: (event type, event) on the channel of its type. Best effort."""
        pipe = self._redis.pipeline(transaction=False)
        for kind, message in messages:
            pipe.publish(CHANNEL + kind, message)
        await self._ask(pipe.execute())

    async def depth(self) -> int:
        """Jobs that wait or are being worked on."""
        counts = await self._ask(self._queue.getJobCounts("wait", "active", "prioritized"))
        return sum(counts.values())

    async def _ask(self, call: Awaitable[Any]) -> Any:
        try:
            return await asyncio.wait_for(call, ADD_TIMEOUT_SECONDS)
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis is away: {type(error).__name__}") from error


class QueueWorker:
    """Feeds jobs to a handler in batches: what waits is taken together, nothing waits for more.

    The handler returns only when the jobs are safely stored; it raises only when cancelled.
    """

    def __init__(
        self, redis_url: str, name: str, handle: Handler, *, concurrency: int, lock_seconds: float
    ) -> None:
        self._handle = handle
        self._waiting: asyncio.Queue[tuple[RawJob, asyncio.Future[None]]] = asyncio.Queue()
        self._redis = _connect(redis_url, timeout=10)
        lock_ms = int(lock_seconds * 1000)
        self._worker = _RawWorker(
            name,
            self._process,
            {
                "autorun": False,
                "connection": self._redis,
                "concurrency": concurrency,
                "drainDelay": 2,
                "lockDuration": lock_ms,
                "stalledInterval": lock_ms,
                "maxStalledCount": _NEVER,
                "runRetryDelay": 500,
                "removeOnComplete": {"count": 0},
            },
        )
        self._worker.on("error", _report)

    async def run(self) -> None:
        """Works until cancelled. Ends with an error if BullMQ's loop gives up, which it does on
        what it calls impossible, so that the process is restarted instead of idling."""
        feeding = asyncio.create_task(self._feed(), name="ingress-batches")
        working = asyncio.create_task(self._worker.run(), name="bullmq-worker")
        try:
            await asyncio.wait({feeding, working}, return_when=asyncio.FIRST_COMPLETED)
            for task in (feeding, working):
                if task.done() and (error := task.exception()):
                    raise error
            raise Unavailable("BullMQ's worker loop ended")
        finally:
            await self._close(feeding, working)

    async def _close(self, *tasks: asyncio.Task[None]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Jobs cut off here keep their lock until it runs out, then another worker takes them.
        # BullMQ's close swallows cancellation and may wait on a dead connection: it gets a
        # moment, and the connections are closed whether it is through or not.
        closing = asyncio.create_task(self._worker.close(force=True))
        await asyncio.wait({closing}, timeout=_CLOSE_SECONDS)
        await self._redis.aclose()

    async def _process(self, job: Job, token: str) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((job.raw, done))
        await done

    async def _feed(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            while not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            await self._handle([job for job, _ in batch])
            for _, done in batch:
                if not done.done():
                    done.set_result(None)


class _RawWorker(Worker):  # type: ignore[misc]
    async def nextJobFromJobData(
        self,
        job_data: dict[str, str] | None = None,
        job_id: str | None = None,
        limit_until: int = 0,
        delay_until: int = 0,
        token: str | None = None,
    ) -> Job | None:
        # Only what BullMQ itself needs is left in the hash, and nothing that it would parse.
        shown = {"name": job_data.get("name", ""), "opts": "{}"} if job_data else None
        job = await super().nextJobFromJobData(shown, job_id, limit_until, delay_until, token)
        if job is not None and job_data is not None:
            job.raw = _raw_job(str(job_id), job_data)
        return job


def _raw_job(job_id: str, fields: Mapping[str, str]) -> RawJob:
    return RawJob(
        id=job_id,
        name=fields.get("name", ""),
        data=fields.get("data", "").encode("utf-8", "surrogateescape"),
        timestamp_ms=_number(fields.get("timestamp")),
        stalled=_number(fields.get("stc")),
    )


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 18 else 0


def _report(error: Exception, *_: object) -> None:
    _log.warning("queue error", extra={"error": f"{type(error).__name__}: {error}"})


def _connect(redis_url: str, *, timeout: float) -> Redis:
    """No retries inside: the callers retry, and know for how long. Bytes that are no UTF-8
    survive as surrogates, so a foreign job cannot make the client fail while it reads."""
    return Redis.from_url(
        redis_url,
        decode_responses=True,
        encoding_errors="surrogateescape",
        socket_timeout=timeout,
        socket_connect_timeout=2,
        socket_keepalive=True,
        health_check_interval=0,
        retry=Retry(NoBackoff(), 0),
    )
