"""The door into BullMQ on Redis: jobs are added, accepted events are told on live channels."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import msgpack
from bullmq import Job, Queue
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import RedisError

from tristore.cancellation import obedient
from tristore.errors import StartRefused, Unavailable
from tristore.events.wire import events_job

ADD_TIMEOUT_SECONDS = 5.0
CHANNEL = "tristore:events:"
_ADD_KEYS = "wait paused meta id completed delayed active events marker".split()
_PUBLISH = """
for _, message in ipairs(cmsgpack.unpack(ARGV[1])) do
    redis.call('PUBLISH', message[1], message[2])
end
"""


class EventQueue:
    """Sends jobs; every call ends soon, with `Unavailable` when Redis is away."""

    def __init__(self, redis_url: str, name: str) -> None:
        self._redis = connect(redis_url, timeout=ADD_TIMEOUT_SECONDS)
        self._queue = Queue(name, {"connection": self._redis})
        self._scripts = self._queue.backend.scripts
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

    async def add_events(self, bodies: Sequence[bytes], *, job_id: str) -> None:
        """One job for many events, each given as JSON. After a time-out the job may still have
        been stored."""
        await self._ask(self._add("events", events_job(bodies), job_id))

    async def _add(self, name: str, data: bytes, job_id: str) -> None:
        """What `Queue.add` does, with data that is JSON already: the library would write a
        parsed copy of it, in ten times the time."""
        options = {"jobId": job_id, "removeOnComplete": True, "removeOnFail": False}
        scripts, job = self._scripts, Job(self._queue, name, None, options)
        args = scripts.addJobArgs(job)
        args[1] = data
        keys = scripts.getKeys(_ADD_KEYS)
        await scripts.commands["addStandardJob"](keys=keys, args=[*args, job.timestamp])

    async def listened(self) -> bool:
        """Whether a message on a live channel would reach anybody. Whoever begins to listen after
        this question would have missed a message sent instead of it."""
        pipe = self._redis.pipeline(transaction=False)
        pipe.pubsub_numpat()
        pipe.pubsub_channels(f"{CHANNEL}*")
        pipe.execute_command("ROLE")  # listeners at a replica are known to it alone
        patterns, channels, role = answers = await self._ask(pipe.execute(raise_on_error=False))
        if any(isinstance(answer, RedisError) for answer in answers):
            return True  # perhaps: this Redis does not let us ask
        return bool(patterns or channels or role[0] != "master" or role[2])

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
            return await obedient(asyncio.wait_for(call, ADD_TIMEOUT_SECONDS))
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis is away: {type(error).__name__}") from error


class _ClosedIsAway:
    """uvloop answers a write into a connection that was closed meanwhile with a RuntimeError,
    which no retry expects: it would end the process for an outage of Redis."""

    async def send_packed_command(self, *args: Any, **options: Any) -> None:
        try:
            await super().send_packed_command(*args, **options)  # type: ignore[misc]
        except RuntimeError as error:
            raise RedisAway(str(error)) from error


def connect(redis_url: str, *, timeout: float) -> Redis:
    """No retries inside: the callers retry, and know for how long. Bytes that are no UTF-8
    survive as surrogates, so a foreign job cannot make the client fail while it reads."""
    redis = Redis.from_url(
        redis_url,
        decode_responses=True,
        encoding_errors="surrogateescape",
        socket_timeout=timeout,
        socket_connect_timeout=2,
        socket_keepalive=True,
        health_check_interval=0,
        retry=Retry(NoBackoff(), 0),
    )
    pool = redis.connection_pool
    pool.connection_class = type("Connection", (_ClosedIsAway, pool.connection_class), {})
    return redis
