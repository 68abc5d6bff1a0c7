"""An event that kills its worker every time ends in the dead letters; its neighbours do not."""

import asyncio
import subprocess

from bullmq import Queue

from tests.support.database import dead_letters, log_count, value
from tests.support.parts import part
from tests.support.waiting import wait_until
from tristore.config import Settings
from tristore.events.envelope import Event

DEADLY = "ingress.event.test.poison.fed:exit9:*"


async def enqueue(settings: Settings, events: list[Event]) -> None:
    queue = Queue(settings.events.queue, {"connection": settings.redis_url})
    await queue.add("events", {"events": [event.to_json() for event in events]})
    await queue.close()


def made(kind: str, number: int) -> Event:
    return Event.make(kind, {"n": number}, source="faults", id=f"{kind}-{number}")


def test_a_crash_loop_ends_after_three_deaths(settings: Settings) -> None:
    url = str(settings.database_url)
    events = [made("test.thing.made", n) for n in range(10)]
    events.insert(5, made("test.poison.fed", 0))
    asyncio.run(enqueue(settings, events))
    deaths = 0
    for _ in range(6):
        with part(settings, "work", "ingress", FAILPOINTS=DEADLY) as ingress:
            wait_until(lambda: ingress.poll() is not None or dead_letters(url), 60)
            if ingress.poll() is None:
                wait_until(lambda: log_count(url) == 10)
                break
            assert ingress.poll() == -9
            deaths += 1
    assert deaths == 3
    (letter,) = dead_letters(url)
    assert (letter["reason"], letter["event_id"]) == ("crash_loop", "test.poison.fed-0")
    assert b"test.poison.fed" in bytes(letter["raw"])


def test_a_worker_killed_by_chance_is_no_verdict_on_its_events(settings: Settings) -> None:
    """Two kills with one job in hand while its events are harmless: none is dead-lettered."""
    url = str(settings.database_url)
    asyncio.run(enqueue(settings, [made("test.thing.made", n) for n in range(5)]))
    for point in ("ingress.after_validate:exit9:1", "ingress.before_commit:exit9:1"):
        with part(settings, "work", "ingress", FAILPOINTS=point) as ingress:
            wait_until(lambda: died(ingress), 60)
    with part(settings, "work", "ingress"):
        wait_until(lambda: log_count(url) == 5, 60)
    assert dead_letters(url) == []
    assert value(url, "SELECT count(*) FROM bus.suspects") == 0


def died(process: subprocess.Popen[bytes]) -> bool:
    return process.poll() == -9
