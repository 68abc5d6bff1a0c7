"""The door to BullMQ on Redis: jobs in, raw jobs out, and the live channels.

BullMQ's port parses a job's data while fetching it and loops for ever on what it cannot parse.
Here the job is handed on as the raw string from its hash; `wire` reads it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack
from bullmq import Job, Queue, Worker
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from tristore.errors import StartRefused, Unavailable

_log = logging.getLogger(__name__)

ADD_TIMEOUT_SECONDS = 5.0
CHANNEL = "tristore:events:"
_CLOSE_TRIES = 10
_PUBLISH = """
for _, message in ipairs(cmsgpack.unpack(ARGV[1])) do
    redis.call('PUBLISH', message[1], message[2])
end
"""
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


class EventQueue:
    """Sends jobs; every call ends soon, with `Unavailable` when Redis is away."""

    def __init__(self, redis_url: str, name: str) -> None:
        self._redis = _connect(redis_url, timeout=ADD_TIMEOUT_SECONDS)
        self._queue = Queue(name, {"connection": self._redis})
        self._publish = self._redis.register_script(_PUBLISH)

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

    async def outlives_a_restart(self) -> bool:
        """Whether this Redis writes what it is given to disk."""
        return bool((await self._ask(self._redis.info("persistence"))).get("aof_enabled"))

    async def add_events(self, events: Sequence[Mapping[str, Any]], *, job_id: str) -> None:
        """One job for many events. After a time-out the job may still have been stored."""
        options = {"jobId": job_id, "removeOnComplete": True, "removeOnFail": False}
        await self._ask(self._queue.add("events", {"events": list(events)}, options))

    async def announce(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Tells live listeners: (event type, event) on the channel of its type. Best effort.

        One command for all: the client's work for a thousand PUBLISH would cost more than
        storing the events.
        """
        pairs = [[CHANNEL + kind, message] for kind, message in messages]
        packed = msgpack.packb(pairs, use_bin_type=False)  # Redis knows no other byte string
        await self._ask(self._publish(args=[packed]))

    async def depth(self) -> int:
        """Jobs that wait or are being worked on."""
        counts = await self._ask(self._queue.getJobCounts("wait", "active", "prioritized"))
        return sum(counts.values())

    async def _ask(self, call: Awaitable[Any]) -> Any:
        try:
            return await asyncio.wait_for(call, ADD_TIMEOUT_SECONDS)
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis is away: {type(error).__name__}") from error


class Sink(Protocol):
    """Where jobs go. `store` returns only when the job's events are safe; `run` does the work."""

    async def store(self, job: RawJob) -> None: ...
    async def run(self) -> None: ...


class QueueWorker:
    """Takes jobs as BullMQ gives them and acknowledges each once the sink has stored it."""

    def __init__(
        self, redis_url: str, name: str, sink: Sink, *, concurrency: int, lock_seconds: float
    ) -> None:
        self._sink = sink
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
        storing = asyncio.create_task(self._sink.run(), name="sink")
        working = asyncio.create_task(self._worker.run(), name="bullmq-worker")
        try:
            await asyncio.wait({storing, working}, return_when=asyncio.FIRST_COMPLETED)
            for task in (storing, working):
                if task.done() and (error := task.exception()):
                    raise error
            raise Unavailable("BullMQ's worker loop ended")
        finally:
            await self._close(storing, working)

    async def _close(self, *tasks: asyncio.Task[None]) -> None:
        """Cuts off; jobs in hand keep their lock until it runs out, then another takes them.

        Not by BullMQ's own close: cancelled half-way it spins for ever, and its run loop may
        swallow a cancellation while jobs are in hand. So every job is cancelled, repeatedly and
        for a bounded time, and then the connections are closed under whatever is left.
        """
        self._worker.closing = self._worker.forceClosing = True
        for _ in range(_CLOSE_TRIES):
            left = {*tasks, *self._worker.processing, *filter(None, [self._worker.waiting])}
            for task in left:
                task.cancel()
            _, pending = await asyncio.wait(left, timeout=0.2)
            if not pending:
                break
        await self._worker.lockManager.close()
        await self._redis.aclose()

    async def _process(self, job: Job, token: str) -> None:
        await self._sink.store(job.raw)


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
