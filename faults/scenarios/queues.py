"""A Redis that forgets, goes away, is full, may evict, stalls, or hangs up on everyone."""

from redis import Redis

from faults.stage import BUS, OPEN, SMALL_JOBS, Outcome, Stage
from tests.support.database import log_count
from tests.support.publishing import Ledger
from tests.support.waiting import wait_until

# Longer than a sender (5 s) waits for an answer.
_STALL_MS = 6000
_ENQUEUED = "SELECT count(*) FROM bus.outbox WHERE state = 'enqueued'"
_PENDING = "SELECT count(*) FROM bus.outbox WHERE state = 'pending'"


def emptied(stage: Stage) -> Outcome:
    """F9. FLUSHALL costs a lease and no event."""
    ledger: Ledger = {}
    with stage.own_redis() as (there, _), Redis.from_url(there.redis_url) as redis:
        with there.part("work", "relay", **SMALL_JOBS):
            for _ in range(stage.faults):
                ledger |= there.commit()
                there.wait_for(_ENQUEUED, len(ledger))
                assert redis.dbsize() > 0
                redis.flushall()
            with there.part("work", "ingress"):
                there.settle()
    stage.check(ledger)
    return Outcome(len(ledger), stage.faults)


def away(stage: Stage) -> Outcome:
    """F10. Publishing goes on while Redis is away, and what waited drains when it is back."""
    ledger: Ledger = {}
    with stage.own_redis() as (there, server), there.part("work", "relay"):
        with there.part("work", "ingress"):
            for _ in range(stage.faults):
                ledger |= there.commit(stage.events // 3)
                there.settle()
                server.stop()
                ledger |= there.commit(stage.events // 3)
                assert there.value(OPEN) == stage.events // 3
                assert server.start() == there.redis_url
                there.settle()
    stage.check(ledger)
    return Outcome(len(ledger), stage.faults)


def full(stage: Stage) -> Outcome:
    """F11. A Redis that takes nothing more: stores go on committing, what is in it stays in
    flight, and all drains once there is room."""
    with stage.own_redis() as (there, _), Redis.from_url(there.redis_url) as redis:
        with there.part("work", "relay") as relay:
            ledger = there.commit(stage.events // 3)
            wait_until(lambda: there.value(_ENQUEUED) == len(ledger))
            redis.config_set("maxmemory", 1)
            with there.part("work", "ingress") as ingress:
                waiting = there.commit(stage.events // 3)
                wait_until(lambda: relay.says("bus away") and ingress.says("queue away"))
                assert log_count(there.url) == 0
                assert there.value(OPEN) == len(ledger | waiting)
                redis.config_set("maxmemory", 0)
                there.settle()
                assert relay.output().count("bus away") == relay.output().count("bus back") > 0
    stage.check(ledger | waiting)
    return Outcome(len(ledger | waiting), 1)


def may_evict(stage: Stage) -> Outcome:
    """F12. Neither part starts on a Redis that may throw jobs away; each names the setting."""
    ledger = stage.commit(20)
    with stage.own_redis() as (there, _), Redis.from_url(there.redis_url) as redis:
        redis.config_set("maxmemory-policy", "allkeys-lru")
        for name in ("relay", "ingress"):
            with there.part("work", name) as part:
                assert part.wait() == 1
                (line,) = part.output().splitlines()
                assert "maxmemory-policy allkeys-lru" in line and "noeviction" in line
        assert there.value(_PENDING) == len(ledger)
        redis.config_set("maxmemory-policy", "noeviction")
        with there.part("work", BUS):
            there.settle()
    stage.check(ledger)
    return Outcome(len(ledger), 2)


def stalled(stage: Stage) -> Outcome:
    """F14. Connections are cut again and again while events flow, and Redis stalls for longer
    than any call waits; afterwards all drains."""
    ledger: Ledger = {}
    cuts = 0
    with stage.own_redis() as (there, _), Redis.from_url(there.redis_url) as redis:
        with there.part("work", "relay", **SMALL_JOBS), there.part("work", "ingress"):
            for _ in range(5 * stage.faults):
                ledger |= there.commit(max(stage.events // (5 * stage.faults), 1))
                cuts += wait_until(lambda: _hang_up(redis))
                redis.client_pause(stage.chance.randint(1, 100))
            redis.client_pause(_STALL_MS)
            ledger |= there.commit(20)
            there.settle()
    stage.check(ledger)
    return Outcome(len(ledger), cuts + 1)


def _hang_up(redis: Redis) -> int:
    """How many connections were cut; ours is not among them."""
    return redis.client_kill_filter(_type="normal", skipme=True)
