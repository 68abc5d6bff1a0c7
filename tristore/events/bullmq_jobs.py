"""BullMQ's own scripts, many jobs to a round trip: take, acknowledge, keep, rescue.

The library's Worker class takes one job a call, parses its data before anyone can object, and
may end, or refuse to end, on its own. Here the same Lua scripts run for many jobs in one command,
and a job is handed on as the raw string from its hash.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgpack
from bullmq.backends import RedisBackend
from bullmq.redis_connection import RedisConnection
from redis.asyncio import Redis
from redis.commands.core import AsyncScript
from redis.exceptions import NoScriptError

from tristore.events.queue import connect
from tristore.events.rawjob import RawJob

PREFIX = "bull"
# BullMQ would move a job to its `failed` set after a few stalls; the ingress worker decides.
_NEVER = 1_000_000
_WAIT_SECONDS = 1.0
# A script of the library as a function, called for one job after the other. Each fails alone.
_FOR_MANY = """
local function once(KEYS, ARGV)
%s
end
local function answer_of(keys, args)
    local ok, answer = pcall(once, keys, args)
    if ok then return answer end
    return {err = type(answer) == 'table' and answer.err or answer}
end
local answers = {}
"""
# Ends early when there is no more, or much already: nobody else is served meanwhile. The library
# leaves a marker after every job; here it is left only if there may be more, so that whoever waits
# for it next is not woken for nothing. The time is the server's: a take may wait there for a job.
_TAKE = """
local now = redis.call('TIME')
ARGV[2] = string.format('%d', now[1] * 1000 + math.floor(now[2] / 1000))
local bytes, most, i, drained = 0, tonumber(ARGV[4]), 0, false
local function left()
    return redis.call('LLEN', KEYS[1]) + redis.call('ZCARD', KEYS[3])
end
repeat
    i = i + 1
    local answer = answer_of(KEYS, ARGV)
    answers[i] = answer
    if not answer.err then
        drained = type(answer[1]) ~= 'table'
        if drained then break end
        for _, text in ipairs(answer[1]) do bytes = bytes + #text end
    end
    if i == 1 then most = math.min(most, 1 + left()) end
until i >= most or bytes > tonumber(ARGV[5])
drained = drained or left() == 0
if drained then
    redis.call('ZREM', KEYS[11], '0')
else
    redis.call('ZADD', KEYS[11], 0, '0')
end
return {drained and 1 or 0, answers}
"""
_MOST_BYTES = 4 * 1024 * 1024
_FINISH = """
local args = {unpack(ARGV, 1, 8)}
for i, id in ipairs(cmsgpack.unpack(ARGV[9])) do
    args[1], KEYS[12] = id, args[7] .. id
    answers[i] = answer_of(KEYS, args)
end
return answers
"""


class Taken(NamedTuple):
    """`more` if there may be others to take at once."""

    jobs: list[RawJob]
    more: bool


class BullJobs:
    """One queue's jobs, for one worker known by `token`."""

    def __init__(self, redis_url: str, queue: str, token: str, lock_seconds: float) -> None:
        self._redis: Redis = connect(redis_url, timeout=10)
        self._backend = RedisBackend(queue, RedisConnection(self._redis), prefix=PREFIX)
        self._scripts = self._backend.scripts
        self._take = self._for_many("moveToActive", _TAKE)
        self._finish = self._for_many("moveToFinished", _FINISH)
        self._token = token
        self._bell = self._scripts.toKey(f"bell:{token}")
        self._lock_ms = int(lock_seconds * 1000)

    async def close(self) -> None:
        await self._redis.aclose()

    async def take(self, most: int) -> Taken:
        """The next jobs in order, locked for this worker."""
        keys, args = self._take_words(most)
        return _taken(await self._take(keys, args))

    async def wait_and_take(self) -> Taken:
        """One job when one may be there, and after a second: delayed jobs make no sound.

        Both words go to Redis at once, so that a job that comes is on its way here without being
        asked for. Once begun this must not be cancelled, or a job is taken that nobody holds. One
        job only: a worker that was stopped while it waits keeps it from others until its lock ends.
        """
        keys, args = self._take_words(1)
        pipe = self._redis.pipeline(transaction=False)
        pipe.bzpopmin([self._scripts.keys["marker"], self._bell], _WAIT_SECONDS)
        pipe.evalsha(self._take.sha, len(keys), *keys, *args)
        waited, answer = await pipe.execute(raise_on_error=False)
        if isinstance(answer, NoScriptError):  # a Redis that was restarted
            return await self.take(1)
        if isinstance(answer, Exception):
            raise answer
        taken = _taken(answer)
        if isinstance(waited, Exception) and not taken.jobs:
            raise waited
        return taken

    async def stop_waiting(self) -> None:
        """Ends a wait of this worker that is under way."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.zadd(self._bell, {"0": 0})
        pipe.pexpire(self._bell, int(_WAIT_SECONDS * 1000))  # if nobody waited
        await pipe.execute()

    async def finish(self, job_ids: Sequence[str]) -> None:
        """Acknowledges jobs whose events are stored. One whose lock was lost is another
        worker's now; one BullMQ cannot finish (a flow's parent, a broken hash) is removed."""
        job = self._job(job_ids[0])
        keys, args = self._scripts.moveToCompletedArgs(job, None, True, self._token, False)
        ids = [job_id.encode("utf-8", "surrogateescape") for job_id in job_ids]
        answers = await self._finish(keys, [*args, msgpack.packb(ids, use_bin_type=False)])
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

    def _take_words(self, most: int) -> tuple[list[str], list[Any]]:
        options = {"token": self._token, "lockDuration": self._lock_ms, "limiter": None}
        keys = self._keys("wait active prioritized events stalled limiter delayed paused meta pc")
        args = [self._scripts.keys[""], 0, msgpack.packb(options), most, _MOST_BYTES]
        return [*keys, *self._keys("marker")], args

    def _for_many(self, name: str, loop: str) -> AsyncScript:
        return self._redis.register_script(_FOR_MANY % self._scripts.commands[name].script + loop)

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


def _taken(answer: tuple[int, list[Any]]) -> Taken:
    drained, answers = answer
    sound = [a for a in answers if not isinstance(a, Exception)]
    if answers and not sound:
        raise answers[0]
    jobs = [RawJob.of(str(a[1]), _pairs(a[0])) for a in sound if a and a[0]]
    return Taken(jobs, more=not drained)


def _is_stuck(answer: Any) -> bool:
    """0 is done; -2 and -6 say that the lock is gone or somebody else's."""
    return isinstance(answer, Exception) or (isinstance(answer, int) and answer not in (0, -2, -6))


def _pairs(flat: Sequence[str]) -> Mapping[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
