"""Relays that die with rows in hand, or sleep through their lease and wake up late."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis

from faults.process import Process
from faults.stage import SMALL_JOBS, Outcome, Stage
from tests.support.waiting import wait_until

POINTS = ["after_claim", "after_add"]
_ONE_CLAIM = {"TRISTORE_EVENTS__RELAY_BATCH": "1000000", "TRISTORE_EVENTS__LEASE_SECONDS": "1"}
_LONG_LEASE = {"TRISTORE_EVENTS__LEASE_SECONDS": "600"}
_CLAIMS = "SELECT token, count(*) FROM bus.outbox WHERE state = 'enqueued' GROUP BY 1 ORDER BY 1"
_TAKEN_OVER = "SELECT count(*) FROM bus.outbox WHERE state = 'enqueued' AND token <> %s"


def killed(stage: Stage, point: str) -> Outcome:
    """F3. Killed after any step, it costs a lease and no event."""
    ledger = stage.commit()
    spec = f"relay.{point}:exit9:{stage.chance.randint(1, 3)}"
    with stage.part("work", "ingress"):
        with stage.part("work", "relay", FAILPOINTS=spec, **SMALL_JOBS) as relay:
            wait_until(relay.was_killed)
        with stage.part("work", "relay"):
            stage.settle()
    stage.check(ledger)
    return Outcome(len(ledger), 1)


def late_and_sending(stage: Stage) -> Outcome:
    """F4. Stopped past its lease, it sends on waking what another has long delivered."""
    ledger = stage.commit()
    with stage.part("work", "ingress"), _stopped(stage) as late, stage.part("work", "relay"):
        stage.settle()
        with Redis.from_url(stage.redis_url) as redis:
            jobs = _jobs_ever(stage, redis)
            late.resume()
            wait_until(lambda: _jobs_ever(stage, redis) > jobs)
            wait_until(lambda: _is_empty(stage, redis))
    stage.check(ledger)
    return Outcome(len(ledger), 1)


def late_and_giving_back(stage: Stage) -> Outcome:
    """F4. Stopped past its lease, it finds Redis full on waking and gives its claim back; the
    rows are another relay's by now, and stay so."""
    ledger = stage.commit()
    with stage.own_redis() as (there, _), Redis.from_url(there.redis_url) as redis:
        with _stopped(there) as late, there.part("work", "relay", **_LONG_LEASE):
            (stale,) = there.rows(_CLAIMS)
            wait_until(lambda: there.value(_TAKEN_OVER, stale["token"]) == len(ledger))
            # Sent, too: a relay that meets the full Redis itself gives back what it holds.
            wait_until(lambda: _jobs_ever(there, redis) > 0)
            claims = there.rows(_CLAIMS)
            redis.config_set("maxmemory", 1)
            late.resume()
            wait_until(lambda: late.says("bus away"))
            assert there.rows(_CLAIMS) == claims
            late.kill()
            redis.config_set("maxmemory", 0)
            with there.part("work", "ingress"):
                there.settle()
    stage.check(ledger)
    return Outcome(len(ledger), 1)


@contextmanager
def _stopped(stage: Stage) -> Iterator[Process]:
    """A relay that holds every row and does not move."""
    with stage.part("work", "relay", FAILPOINTS="relay.after_claim:stop:1", **_ONE_CLAIM) as relay:
        wait_until(relay.is_stopped)
        yield relay


def _jobs_ever(stage: Stage, redis: Redis) -> int:
    return int(redis.get(f"bull:{stage.settings.events.queue}:id") or 0)


def _is_empty(stage: Stage, redis: Redis) -> bool:
    name = f"bull:{stage.settings.events.queue}"
    return not redis.llen(f"{name}:wait") and not redis.llen(f"{name}:active")
