"""BullMQ's own scripts, many jobs to a round trip: take, acknowledge, keep, rescue.

The library's Worker class takes one job a call, parses its data before anyone can object, and
may end, or refuse to end, on its own. Here the same Lua scripts run in pipelines, and a job is
handed on as the raw string from its hash.
"""

import time
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import msgpack
from bullmq.backends import RedisBackend
from bullmq.redis_connection import RedisConnection
from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from tristore.events.queue import connect
from tristore.events.rawjob import RawJob

PREFIX = "bull"
# BullMQ would move a job to its `failed` set after a few stalls; the ingress worker decides.
_NEVER = 1_000_000
_WAIT_SECONDS = 1.0


class BullJobs:
    """One queue's jobs, for one worker known by `token`."""

    def __init__(self, redis_url: str, queue: str, token: str, lock_seconds: float) -> None:
        self._redis: Redis = connect(redis_url, timeout=10)
        self._backend = RedisBackend(queue, RedisConnection(self._redis), prefix=PREFIX)
        self._scripts = self._backend.scripts
        self._token = token
        self._lock_ms = int(lock_seconds * 1000)

    async def close(self) -> None:
        await self._redis.aclose()

    async def wait(self) -> None:
        """Returns when a job may be there, and after a second: delayed jobs make no sound."""
        await self._redis.bzpopmin(self._scripts.keys["marker"], _WAIT_SECONDS)

    async def take(self, most: int) -> list[RawJob]:
        """The next jobs in order, locked for this worker."""
        options = {"token": self._token, "lockDuration": self._lock_ms, "limiter": None}
        args = [self._scripts.keys[""], _now_ms(), msgpack.packb(options)]
        keys = self._keys("wait active prioritized events stalled limiter delayed paused meta pc")
        answers = await self._call(
            "moveToActive", [([*keys, self._keys("marker")[0]], args)] * most
        )
        taken = [a for a in answers if not isinstance(a, Exception)]
        if not taken:
            raise answers[0]
        return [RawJob.of(str(a[1]), _pairs(a[0])) for a in taken if a and a[0]]

    async def finish(self, job_ids: Sequence[str]) -> None:
        """Acknowledges jobs whose events are stored. One whose lock was lost is another
        worker's now; one BullMQ cannot finish (a flow's parent, a broken hash) is removed."""
        calls = [
            self._scripts.moveToCompletedArgs(self._job(job_id), None, True, self._token, False)
            for job_id in job_ids
        ]
        answers = await self._call("moveToFinished", calls)
        stuck = [i for i, answer in zip(job_ids, answers, strict=True) if _is_stuck(answer)]
        for job_id in stuck:
            await self._remove(job_id)

    async def keep(self, job_ids: Sequence[str]) -> None:
        """Renews the locks of jobs in hand."""
        tokens = [self._token] * len(job_ids)
        await self._backend.extendLocks(list(job_ids), tokens, self._lock_ms)

    async def rescue(self) -> int:
        """Puts jobs back whose worker has died; asked by every worker, done by one at a time."""
        found = await self._backend.moveStalledJobsToWait(_NEVER, self._lock_ms // 2)
        return len(found or [])

    async def _call(self, name: str, calls: Sequence[tuple[list[Any], list[Any]]]) -> list[Any]:
        """The script once per call, in one round trip. redis-py would ask in another whether
        the server knows it; here it is told when it turns out that it does not."""
        script = self._scripts.commands[name]
        for _ in range(2):
            async with self._redis.pipeline(transaction=False) as pipe:
                for keys, args in calls:
                    pipe.evalsha(script.sha, len(keys), *keys, *args)
                answers: list[Any] = await pipe.execute(raise_on_error=False)
            if not any(isinstance(answer, NoScriptError) for answer in answers):
                break
            await self._redis.script_load(script.script)
        return answers

    async def _remove(self, job_id: str) -> None:
        key = self._scripts.toKey(job_id)
        pipe = self._redis.pipeline(transaction=True)
        pipe.lrem(self._scripts.keys["active"], 0, job_id)
        pipe.srem(self._scripts.keys["stalled"], job_id)
        pipe.delete(key, f"{key}:lock")
        await pipe.execute()

    def _keys(self, names: str) -> list[str]:
        return [self._scripts.keys[name] for name in names.split()]

    def _job(self, job_id: str) -> Any:
        """As much of a job as finishing it takes."""
        queue = SimpleNamespace(opts={"lockDuration": self._lock_ms})
        return SimpleNamespace(id=job_id, queue=queue, attempts=1, attemptsMade=0, opts={})


def _is_stuck(answer: Any) -> bool:
    """0 is done; -2 and -6 say that the lock is gone or somebody else's."""
    return isinstance(answer, Exception) or (isinstance(answer, int) and answer not in (0, -2, -6))


def _pairs(flat: Sequence[str]) -> Mapping[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _now_ms() -> int:
    return round(time.time() * 1000)
