"""Few events and many take different ways into the log; both keep the same promises."""

import asyncio
import json
from typing import Any

import psycopg
import pytest
from bullmq import Queue
from redis.asyncio import Redis

from tests.integration.test_line import event, put_raw
from tests.support.database import dead_letters, log_count, rows
from tests.support.waiting import until
from tristore import Publisher
from tristore.config import Settings
from tristore.events.log import FEW

SIZES = pytest.mark.parametrize("size", [9, FEW + 60], ids=["few", "many"])
PLACES = "SELECT id, ingress_sequence FROM bus.workflow_events ORDER BY ingress_sequence"


async def put(settings: Settings, job_id: str, events: list[dict[str, Any]]) -> None:
    await put_raw(settings, job_id, "events", json.dumps({"events": events}).encode())


async def settled(settings: Settings, stored: int, dead: int = 0) -> None:
    url = str(settings.database_url)

    async def there() -> bool:
        found = await asyncio.to_thread(dead_letters, url)
        return (await asyncio.to_thread(log_count, url), len(found)) == (stored, dead)

    await until(there)


def order(settings: Settings) -> list[str]:
    """The ids in the order of the log, which has no gap."""
    found = rows(str(settings.database_url), PLACES)
    assert [row["ingress_sequence"] for row in found] == list(range(1, len(found) + 1))
    return [row["id"] for row in found]


@SIZES
async def test_an_event_that_postgres_refuses_is_found_among_its_neighbours(
    bus: Settings, size: int
) -> None:
    with psycopg.connect(str(bus.database_url), autocommit=True) as conn:
        conn.execute(
            "ALTER TABLE bus.workflow_events ADD CHECK (payload @> '{}' AND payload <> '{\"n\":5}')"
        )
    await put(bus, "1", [event(n) for n in range(size)])
    await settled(bus, stored=size - 1, dead=1)
    (letter,) = dead_letters(str(bus.database_url))
    assert (letter["event_id"], letter["reason"]) == ("e-5", "store_refused")
    assert sorted(order(bus)) == sorted(f"e-{n}" for n in range(size) if n != 5)


@SIZES
async def test_old_new_and_conflicting_events_in_one_job(bus: Settings, size: int) -> None:
    first = [event(n) for n in range(size)]
    await put(bus, "1", first)
    await settled(bus, stored=size)
    other = event(0, payload={"n": "another"})
    fresh = [event(n) for n in range(size, 2 * size)]
    await put(bus, "2", [*first[1:], *fresh, fresh[0], other])
    await settled(bus, stored=2 * size, dead=1)
    assert dead_letters(str(bus.database_url))[0]["reason"] == "id_conflict"
    assert order(bus) == [f"e-{n}" for n in range(2 * size)]


@SIZES
async def test_every_field_is_stored_as_it_was_sent(bus: Settings, size: int) -> None:
    full = event(
        0,
        payload={"big": 2**53 + 1, "text": 'ü\u2028\\"\t\\u0041', "f": 0.1, "deep": [{"a": None}]},
        occurredAt="2026-11-15T10:00:00.123456+02:00",
        correlationId="c\t9",
        metadata={"traceparent": "00-1"},
        ttl=9_000_000_000_000,
        schemaVersion=7,
    )
    await put(bus, "1", [full, *(event(n) for n in range(1, size))])
    await settled(bus, stored=size)
    one, two, *_ = rows(
        str(bus.database_url), "SELECT * FROM bus.workflow_events ORDER BY ingress_sequence"
    )
    assert (one["payload"], one["metadata"]) == (full["payload"], full["metadata"])
    assert (one["correlation_id"], one["ttl_ms"]) == ("c\t9", 9_000_000_000_000)
    assert (one["type"], one["source"], one["schema_version"]) == (full["type"], "test", 7)
    assert one["occurred_at"].isoformat() == "2026-11-15T08:00:00.123456+00:00"
    assert one["received_at"] == two["received_at"] >= one["occurred_at"]
    nothing = ("correlation_id", "ttl_ms", "metadata", "schema_version")
    assert [two[name] for name in nothing] == [None] * 4


@SIZES
async def test_whoever_listens_hears_of_each_event_once(bus: Settings, size: int) -> None:
    client = Redis.from_url(str(bus.redis_url))
    channel = client.pubsub()
    await channel.psubscribe("tristore:events:test.heard.*")
    await put(bus, "1", [event(n % size, type="test.heard.made") for n in range(2 * size)])
    heard: list[str] = []

    async def all_heard() -> bool:
        message = await channel.get_message(ignore_subscribe_messages=True, timeout=0.1)
        heard.extend([json.loads(message["data"])["id"]] if message else [])
        return len(heard) >= size

    await until(all_heard)
    assert heard == [f"e-{n}" for n in range(size)]
    assert await channel.get_message(ignore_subscribe_messages=True, timeout=0.1) is None
    await channel.aclose()
    await client.aclose()


async def test_a_time_that_no_calendar_holds_is_a_dead_letter_like_any_other(bus: Settings) -> None:
    """Before the year 1 once it is in UTC: reading it must not end the worker."""
    await put(bus, "1", [event(1, occurredAt="0001-01-01T00:00:00+02:00"), event(2)])
    await settled(bus, stored=1, dead=1)
    (letter,) = dead_letters(str(bus.database_url))
    assert (letter["reason"], letter["errors"][0]["path"]) == ("envelope_invalid", "/occurredAt")


async def test_redis_does_not_grow_with_the_events_that_passed_through_it(bus: Settings) -> None:
    """Four more rounds of half a megabyte leave no key and less than one of them behind."""
    rounds, size = 5, 2000
    client = Redis.from_url(str(bus.redis_url))
    queue = Queue(bus.events.queue, {"connection": bus.redis_url})
    seen: list[tuple[set[bytes], int]] = []
    async with Publisher(source="flat", settings=bus) as publisher:
        for number in range(1, rounds + 1):
            made = {"type": "test.thing.made", "payload": {"text": "x" * 150}}
            await publisher.publish_many([made] * (size - 50))
            await queue.addBulk([{"name": "event", "data": {**made, "source": "flat"}}] * 50)
            await settled(bus, stored=number * size)
            await until(lambda: idle(queue))
            keys = {key async for key in client.scan_iter(f"bull:{bus.events.queue}:*")}
            seen.append((keys, (await client.info("memory"))["used_memory"]))
    await queue.close()
    await client.aclose()
    assert all(keys == seen[0][0] for keys, _ in seen)
    assert seen[-1][1] - seen[0][1] < 500_000


async def idle(queue: Queue) -> bool:
    counts = await queue.getJobCounts("wait", "active", "completed", "failed", "delayed")
    return not any(counts.values())
