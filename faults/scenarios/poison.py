"""Events that kill the worker that touches them."""

import asyncio

from bullmq import Queue

from faults.process import Process
from faults.stage import Outcome, Stage
from tests.support.database import log_count
from tests.support.publishing import Ledger, digest
from tests.support.waiting import wait_until
from tristore.events.envelope import Event

DEADLY = "ingress.event.test.poison.fed:exit9:*"
HARMLESS = 10
_LETTERS = "SELECT event_id, reason, raw FROM bus.dead_letters"


def fed(stage: Stage) -> Outcome:
    """F6. After three deaths the killer, and only it, is a dead letter with its bytes."""
    poison = Event.make("test.poison.fed", {"n": 0}, source="faults")
    events = [_harmless(number) for number in range(HARMLESS)]
    asyncio.run(_enqueue(stage, [*events[:5], poison, *events[5:]]))
    deaths = 0
    while not stage.rows(_LETTERS):
        with stage.part("work", "ingress", FAILPOINTS=DEADLY) as worker:
            if _dies(stage, worker):
                deaths += 1
                assert deaths <= 3
                continue
            wait_until(lambda: log_count(stage.url) == HARMLESS)
    assert deaths == 3
    (letter,) = stage.rows(_LETTERS)
    assert (letter["reason"], letter["event_id"]) == ("crash_loop", poison.id)
    assert b"test.poison.fed" in bytes(letter["raw"])
    stage.check(_ledger(events), letters=1)
    return Outcome(HARMLESS + 1, deaths)


def suspected(stage: Stage) -> Outcome:
    """F6. Two workers killed by chance with one job in hand are no verdict on its events."""
    events = [_harmless(number) for number in range(HARMLESS)]
    asyncio.run(_enqueue(stage, events))
    for point in ("ingress.after_validate:exit9:1", "ingress.before_commit:exit9:1"):
        with stage.part("work", "ingress", FAILPOINTS=point) as worker:
            wait_until(worker.was_killed, 60)
    with stage.part("work", "ingress"):
        wait_until(lambda: log_count(stage.url) == HARMLESS, 60)
    stage.check(_ledger(events))
    assert stage.value("SELECT count(*) FROM bus.suspects") == 0
    return Outcome(HARMLESS, 2)


def _dies(stage: Stage, worker: Process) -> bool:
    """As opposed to: lives to write the letter."""
    wait_until(lambda: worker.was_killed() or stage.rows(_LETTERS), 60)
    return worker.was_killed()


async def _enqueue(stage: Stage, events: list[Event]) -> None:
    queue = Queue(stage.settings.events.queue, {"connection": stage.redis_url})
    await queue.add("events", {"events": [event.to_json() for event in events]})
    await queue.close()


def _harmless(number: int) -> Event:
    return Event.make("test.thing.made", {"n": number}, source="faults")


def _ledger(events: list[Event]) -> Ledger:
    return {event.id: digest(event.payload) for event in events}
