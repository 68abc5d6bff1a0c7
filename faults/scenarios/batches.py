"""Bad events in the middle of good ones, and many writers at once."""

import asyncio
from typing import Any

from bullmq import Queue

from faults.stage import Outcome, Stage
from tests.integration.test_sequence import WRITERS, append, race, read_log
from tests.support.publishing import Ledger, digest
from tests.support.waiting import wait_until
from tristore.events.envelope import Event

_NUMBERS = "SELECT ingress_sequence FROM bus.workflow_events ORDER BY 1"
_LETTERS = "SELECT count(*) FROM bus.dead_letters"
_GOOD_PER_JOB = 99


def with_a_bad_one(stage: Stage) -> Outcome:
    """F37. In each job one event that no store could keep: it alone is a dead letter."""
    jobs = max(stage.events // _GOOD_PER_JOB, len(_BAD))
    ledger: Ledger = {}
    with stage.part("work", "ingress"):
        for number in range(jobs):
            good = [Event.make("test.thing.made", {"n": n}, source="faults") for n in range(99)]
            listed: list[Any] = [event.to_json() for event in good]
            listed.insert(stage.chance.randint(0, _GOOD_PER_JOB), _bad(number))
            asyncio.run(_enqueue(stage, listed))
            ledger |= {event.id: digest(event.payload) for event in good}
        wait_until(lambda: stage.value(_LETTERS) == jobs)
        wait_until(lambda: len(stage.rows(_NUMBERS)) == len(ledger))
    stage.check(ledger, letters=jobs)
    return Outcome(len(ledger) + jobs, jobs)


def written_by_many(stage: Stage) -> Outcome:
    """F19. Writers that dawdle and roll back, and a reader at the tail, which skips nothing."""
    seen = asyncio.run(race(stage.url, append, read_log))
    stored = [row["ingress_sequence"] for row in stage.rows(_NUMBERS)]
    assert seen == stored == list(range(1, len(stored) + 1))
    return Outcome(len(stored), WRITERS)


def _bad(number: int) -> Any:
    """The number keeps letters apart: the same bytes twice are one letter."""
    event = {"type": "test.thing.made", "source": f"faults-{number}", "payload": {}}
    return {**event, **_BAD[number % len(_BAD)]}


_BAD: list[dict[str, Any]] = [
    {"type": "metastore.record.deleted", "payload": {"namespace": 1}},
    {"payload": {"text": "\0"}},
    {"payload": {"text": "x" * 5_000_000}},
    {"type": "not a type"},
    {"occurredAt": "yesterday"},
    {"unknown": True},
    {"payload": "no object"},
]


async def _enqueue(stage: Stage, events: list[Any]) -> None:
    queue = Queue(stage.settings.events.queue, {"connection": stage.redis_url})
    await queue.add("events", {"events": events})
    await queue.close()
