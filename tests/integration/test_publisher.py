"""The publisher through each of its doors: what it refuses, what it promises, what it packs."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.support.database import dead_letters, log_count, rows, value
from tests.support.parts import part
from tests.support.waiting import until, wait_until
from tristore import BlockingPublisher, Publisher
from tristore.config import Settings
from tristore.errors import IdConflict, InvalidEvent, StartRefused
from tristore.events.envelope import Event
from tristore.events.payloads import FilestoreDriftDetected
from tristore.observe import correlation_id

KIND = "test.thing.made"


def made(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"type": KIND, "payload": {"n": n}, **fields} for n in range(count)]


async def stored(settings: Settings, count: int) -> list[dict[str, Any]]:
    async def all_there() -> bool:
        return log_count(str(settings.database_url)) >= count

    await until(all_there)
    return rows(
        str(settings.database_url), "SELECT * FROM bus.workflow_events ORDER BY ingress_sequence"
    )


async def test_an_event_arrives_as_it_was_given(bus: Settings) -> None:
    at = datetime(2026, 11, 15, 8, 30, tzinfo=UTC)
    drift = FilestoreDriftDetected(mount="m", path="in/f7", reason="modified", journal_id=119)
    async with Publisher(source="ingest.nightly", settings=bus) as publisher:
        first = await publisher.publish(
            KIND,
            {"minute": "2026-11-15T00:00Z", "big": 2**53 + 1},
            correlation_id="run-7",
            ttl=86_400_000_000,
            metadata={"traceparent": "00-1"},
            id="my-1",
            occurred_at=at,
        )
        second = await publisher.publish("filestore.drift.detected", drift)
        assert (publisher.counters.sent, publisher.unsent) == (2, 0)
    one, two = await stored(bus, 2)
    assert (one["id"], one["source"], one["occurred_at"]) == (first, "ingest.nightly", at)
    assert one["payload"] == {"minute": "2026-11-15T00:00Z", "big": 2**53 + 1}
    assert (one["correlation_id"], one["ttl_ms"]) == ("run-7", 86_400_000_000)
    assert one["metadata"] == {"traceparent": "00-1"}
    assert (two["id"], two["schema_version"]) == (second, 1)
    assert dead_letters(str(bus.database_url)) == []


async def test_an_event_carries_the_correlation_id_of_the_request_it_is_made_in(
    bus: Settings,
) -> None:
    token = correlation_id.set("request-1")
    async with Publisher("s", settings=bus) as publisher:
        await publisher.publish(KIND, {})
    correlation_id.reset(token)
    (row,) = await stored(bus, 1)
    assert row["correlation_id"] == "request-1"


async def test_many_events_travel_in_few_jobs_and_stay_in_order(settings: Settings) -> None:
    """No ingress runs: what lies in the queue is what was sent."""
    async with Publisher("s", settings=settings) as publisher:
        ids = await publisher.publish_many(made(1_200))
        large = [{"type": KIND, "payload": {"x": "y" * 200_000}} for _ in range(8)]
        await publisher.publish_many(large)
    async with Redis.from_url(str(settings.redis_url), decode_responses=True) as redis:
        names = await redis.lrange(f"bull:{settings.events.queue}:wait", 0, -1)
        sizes = [
            await redis.hstrlen(f"bull:{settings.events.queue}:{name}", "data") for name in names
        ]
    assert len(set(ids)) == 1_200
    assert len(names) == 3 + 3
    assert max(sizes) < 1024 * 1024


async def test_publish_many_takes_envelopes_and_events_and_returns_their_ids(bus: Settings) -> None:
    event = Event.make(KIND, {"n": 2}, source="other")
    given = [{"id": "a", "type": KIND, "payload": {"n": 1}, "correlationId": "c"}, event]
    async with Publisher("mine", settings=bus) as publisher:
        assert await publisher.publish_many(given) == ["a", event.id]
        assert await publisher.publish_many([]) == []
    found = await stored(bus, 2)
    assert [(r["id"], r["source"]) for r in found] == [("a", "mine"), (event.id, "other")]


BAD: list[tuple[str, Any, dict[str, Any], list[str]]] = [
    ("Wrong", {}, {"ttl": -1, "id": ""}, ["/id", "/type", "/ttl"]),
    ("filestore.drift.detected", {"mount": 7}, {"ttl": 0}, ["/ttl", "/payload", "/payload/mount"]),
    (KIND, {"x": float("nan")}, {}, ["/payload/x"]),
    (KIND, {"x": [1, {"y": float("-inf")}]}, {}, ["/payload/x/1/y"]),
    (KIND, {"x": 2**63}, {}, [""]),
    (KIND, {"x": {1, 2}}, {}, [""]),
    (KIND, {"x": "\x00"}, {}, [""]),
    (KIND, {"x": "\ud800"}, {}, [""]),
    (KIND, [1], {}, ["/payload"]),
    (KIND, {"x": "y" * 300_000}, {}, ["/payload"]),
    (KIND, {}, {"occurred_at": datetime(2026, 1, 1)}, ["/occurredAt"]),
    (KIND, {}, {"nonsense": 1}, ["/nonsense"]),
]


@pytest.mark.parametrize(("type", "payload", "fields", "paths"), BAD)
async def test_an_invalid_event_is_refused_with_every_violation_before_it_is_sent(
    settings: Settings, type: str, payload: Any, fields: dict[str, Any], paths: list[str]
) -> None:
    async with Publisher("s", settings=settings) as publisher:
        with pytest.raises(InvalidEvent) as refused:
            await publisher.publish(type, payload, **fields)
        found = sorted({v.path for v in refused.value.violations})
        assert found == sorted(set(paths)), refused.value
        assert publisher.counters.accepted == 0


async def test_one_invalid_event_among_many_stops_all_and_is_named(settings: Settings) -> None:
    events = [*made(3), {"type": "No", "payload": 1}, *made(1), {"payload": {}}]
    async with Publisher("s", settings=settings) as publisher:
        with pytest.raises(InvalidEvent) as refused:
            await publisher.publish_many(events)
        assert {v.path for v in refused.value.violations} == {"/3/type", "/3/payload", "/5/type"}
        assert publisher.counters.accepted == 0


def test_plain_code_publishes_too(bus_parts: Settings) -> None:
    with BlockingPublisher(source="plain", settings=bus_parts) as publisher:
        one = publisher.publish(KIND, {"n": 1})
        rest = publisher.publish_many(made(50))
        publisher.flush()
        assert (publisher.counters.sent, publisher.unsent) == (51, 0)
        with pytest.raises(InvalidEvent):
            publisher.publish("no", {})
    wait_until(lambda: log_count(str(bus_parts.database_url)) == 51)
    ids = rows(str(bus_parts.database_url), "SELECT id FROM bus.workflow_events")
    assert {row["id"] for row in ids} == {one, *rest}


async def test_inline_and_a_database_url_go_through_the_outbox(
    settings: Settings, database_url: str
) -> None:
    inline = settings.model_copy(update={"redis_url": "inline"})
    for options in ({"settings": inline}, {"url": database_url, "settings": settings}):
        async with Publisher("s", **options) as publisher:
            ids = await publisher.publish_many(made(700))
        found = "SELECT count(*) FROM bus.outbox WHERE event_id = ANY(%s) AND state = 'pending'"
        assert value(database_url, found, ids) == 700


async def test_a_taken_id_is_told_to_its_caller_and_holds_up_nobody_else(
    settings: Settings, database_url: str
) -> None:
    async with Publisher("s", database_url, settings=settings) as publisher:
        await publisher.publish(KIND, {"n": 1}, id="taken")
        assert await publisher.publish(KIND, {"n": 1}, id="taken") == "taken"

        async def clash() -> None:
            with pytest.raises(IdConflict, match="taken"):
                await publisher.publish(KIND, {"n": 2}, id="taken")

        others = [publisher.publish(KIND, {"n": n}) for n in range(20)]
        await asyncio.gather(*others[:10], clash(), *others[10:])
        assert (publisher.counters.refused, publisher.counters.sent) == (1, 22)
    assert value(database_url, "SELECT count(*) FROM bus.outbox") == 21


async def test_a_publisher_without_a_bus_or_outside_its_block_says_what_to_do(
    settings: Settings,
) -> None:
    nowhere = Settings(database_url=None, redis_url=None, url=None)
    with pytest.raises(StartRefused, match="TRISTORE_REDIS_URL"):
        async with Publisher("s", settings=nowhere):
            pass
    with pytest.raises(StartRefused, match="async with"):
        await Publisher("s", settings=settings).publish(KIND, {})


async def test_an_error_in_the_block_is_not_hidden_and_what_was_given_is_sent(
    bus: Settings,
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with Publisher("s", settings=bus) as publisher:
            await publisher.publish(KIND, {})
            raise ZeroDivisionError
    assert len(await stored(bus, 1)) == 1


@pytest.fixture
def bus_parts(settings: Settings) -> Iterator[Settings]:
    """Ingress as a process of its own, for tests without an event loop."""
    with part(settings, "work", "ingress"):
        yield settings
