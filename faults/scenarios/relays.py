"""Relays that die with rows in hand, or sleep through their lease and wake up late."""

from redis import Redis

from faults.process import Process
from faults.stage import SMALL_JOBS, Outcome, Stage
from tests.support.waiting import wait_until

POINTS = ["after_claim", "after_add"]
SHORT_LEASE = {"TRISTORE_EVENTS__LEASE_SECONDS": "1"}
LONG_LEASE = {"TRISTORE_EVENTS__LEASE_SECONDS": "600"}
_CLAIMS = "SELECT token, count(*) FROM bus.outbox WHERE state = 'enqueued' GROUP BY 1 ORDER BY 1"
_DONE = "SELECT count(*) FROM bus.outbox WHERE state = 'done'"


def killed(stage: Stage, point: str) -> Outcome:
    """F3. Killed after any step, it costs a lease and no event."""
    ledger = stage.commit()
    nth = stage.chance.randint(1, 3)
    spec = f"relay.{point}:exit9:{nth}"
    with stage.part("work", "ingress"):
        with stage.part("work", "relay", FAILPOINTS=spec, **SMALL_JOBS) as relay:
            wait_until(relay.was_killed)
        with stage.part("work", "relay"):
            stage.settle()
    stage.check(ledger)
    return Outcome(len(ledger), 1)


def late_and_sending(stage: Stage) -> Outcome:
    """F4. A relay stopped past its lease sends, on waking, what another has long delivered."""
    ledger = stage.commit()
    with stage.part("work", "ingress"), _stopped_relay(stage, "sending") as late:
        with stage.part("work", "relay"):
            stage.settle()
            jobs = _jobs_ever(stage)
            late.resume()
            wait_until(lambda: _jobs_ever(stage) > jobs)  # the late job is in the queue
            wait_until(lambda: _queue_is_empty(stage))
    stage.check(ledger)
    return Outcome(len(ledger), 1)


def late_and_giving_back(stage: Stage) -> Outcome:
    """F4. One that finds Redis full on waking gives its claim back: it is another's by now, and
    the fence keeps the other's."""
    ledger = stage.commit()
    with stage.own_redis() as (there, _), Redis.from_url(there.redis_url) as redis:
        with _stopped_relay(there, "sending") as late:
            with there.part("work", "relay", **LONG_LEASE):
                wait_until(lambda: _claimed(there, len(ledger), without=late_claim(there)))
                claims = there.rows(_CLAIMS)
                redis.config_set("maxmemory", 1)
                late.resume()
                wait_until(lambda: late.says("bus away"))
                assert there.rows(_CLAIMS) == claims
            late.kill()
        redis.config_set("maxmemory", 0)
        with there.part("work", "ingress"):
            there.settle()
        there.check(ledger)
    return Outcome(len(ledger), 1)
