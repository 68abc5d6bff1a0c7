"""Ingress workers that die, stand still past their locks, or are too busy to renew them."""

import asyncio

from redis import Redis

from faults.stage import SMALL_JOBS, Outcome, Stage
from tests.support.database import log_count
from tests.support.publishing import Ledger, enqueue_events
from tests.support.waiting import wait_until

POINTS = ["after_validate", "before_commit", "after_commit"]
_PUT_BACK = "jobs of a dead worker put back"


def killed(stage: Stage, point: str) -> Outcome:
    """F5. Killed after any step, its jobs go to the next worker, and none is stored twice."""
    ledger = stage.commit() | _enqueue(stage, max(stage.events // 3, 20))
    spec = f"ingress.{point}:exit9:{stage.chance.randint(1, 2)}"
    with stage.part("work", "relay", **SMALL_JOBS):
        with stage.part("work", "ingress", FAILPOINTS=spec) as worker:
            wait_until(worker.was_killed)
        with stage.part("work", "ingress"):
            _settle(stage, ledger)
    stage.check(ledger)
    return Outcome(len(ledger), 1)


def stopped(stage: Stage, point: str) -> Outcome:
    """F7. Stopped past its lock; a second worker takes its jobs; the first wakes up and goes on
    with them. Before the commit it holds the head of the log, and the second waits for it."""
    ledger = _enqueue(stage, stage.events)
    twice = f"ingress.{point}:stop:1,ingress.after_commit:stop:1"
    with stage.part("work", "ingress", FAILPOINTS=twice) as first:
        wait_until(first.is_stopped)
        with stage.part("work", "ingress") as second:
            wait_until(lambda: second.says(_PUT_BACK))
            if point != "before_commit":
                wait_until(lambda: log_count(stage.url) == len(ledger))
            first.resume()
            if point != "after_commit":
                # Past its own commit: it has run what the other ran too.
                wait_until(first.is_stopped)
                first.resume()
            _settle(stage, ledger)
        wait_until(lambda: log_count(stage.url) == len(ledger))
    stage.check(ledger)
    return Outcome(len(ledger), 1)


def busy(stage: Stage) -> Outcome:
    """F8. An event loop blocked for longer than the lock renews nothing; the jobs run twice, and
    their events are stored once. Being slow is no verdict on an event."""
    ledger = _enqueue(stage, stage.events)
    spec = "ingress.after_validate:hold:1,ingress.after_commit:stop:1"
    with stage.part("work", "ingress", FAILPOINTS=spec) as first:
        with Redis.from_url(stage.redis_url) as redis:
            active = f"bull:{stage.settings.events.queue}:active"
            wait_until(lambda: redis.llen(active))
        with stage.part("work", "ingress") as second:
            wait_until(lambda: second.says(_PUT_BACK))
            wait_until(lambda: log_count(stage.url) == len(ledger))
            first.release()
            # Past its own commit: it has run what the other ran too.
            wait_until(first.is_stopped)
            first.resume()
            _settle(stage, ledger)
    stage.check(ledger)
    return Outcome(len(ledger), 1)


def _enqueue(stage: Stage, count: int) -> Ledger:
    return asyncio.run(enqueue_events(stage.redis_url, stage.settings.events.queue, count))


def _settle(stage: Stage, ledger: Ledger) -> None:
    stage.settle()
    wait_until(lambda: log_count(stage.url) == len(ledger))
