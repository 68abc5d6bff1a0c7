"""One event's way: transaction, outbox, queue, ingress, log or dead letter."""

import asyncio
import json
from typing import Any

import pytest
from bullmq import Queue
from redis.asyncio import Redis

from tests.support.database import dead_letters, log_count, rows, value
from tests.support.waiting import until
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.events import outbox
from tristore.events.envelope import Event
from tristore.events.payloads import MetastoreRecordCreated
from tristore.wiring import open_ingress, open_relay

GOOD = {"type": "test.thing.made", "source": "test", "occurredAt": "2026-11-15T10:00:00Z"}


def event(number: int, **changes: Any) -> dict[str, Any]:
    return {**GOOD, "id": f"e-{number}", "payload": {"n": number}, **changes}


def record(key: str) -> MetastoreRecordCreated:
    return MetastoreRecordCreated(
        namespace="files", key=key, version=1, tags=("raw",), actor="me", changed=("tags",)
    )


async def test_a_committed_event_is_stored_once_with_its_metadata(bus: Settings) -> None:
    async with make_pool(str(bus.database_url), name="test") as pool:
        async with pool.connection() as conn, conn.transaction():
            sent = await outbox.add(conn, record("a"), source="metastore.api", correlation_id="c-1")
        await until(lambda: _count(bus, 1))
    (stored,) = rows(str(bus.database_url), "SELECT * FROM bus.workflow_events")
    assert stored["id"] == sent.id
    assert stored["type"] == "metastore.record.created"
    assert stored["source"] == "metastore.api"
    assert stored["correlation_id"] == "c-1"
    assert stored["schema_version"] == 1
    assert stored["occurred_at"] == sent.occurred_at
    assert stored["payload"] == record("a").to_json()
    assert stored["ingress_sequence"] == 1
    await until(lambda: _outbox_done(bus, 1))


async def test_a_rolled_back_event_never_existed(bus: Settings) -> None:
    async with make_pool(str(bus.database_url), name="test") as pool:
        async with pool.connection() as conn:
            with pytest.raises(ZeroDivisionError):
                async with conn.transaction():
                    await outbox.add(conn, record("never"), source="t")
                    raise ZeroDivisionError
            async with conn.transaction():
                await outbox.add(conn, record("kept"), source="t")
        await until(lambda: _count(bus, 1))
    assert value(str(bus.database_url), "SELECT payload->>'key' FROM bus.workflow_events") == "kept"


async def test_a_foreign_bullmq_client_publishes_one_or_many(bus: Settings) -> None:
    queue = Queue(bus.events.queue, {"connection": bus.redis_url})
    await queue.add("event", event(1))
    await queue.add("events", {"events": [event(2), event(3)]})
    await until(lambda: _count(bus, 3))
    await queue.close()
    sequences = rows(str(bus.database_url), "SELECT id, ingress_sequence FROM bus.workflow_events")
    assert sorted(row["ingress_sequence"] for row in sequences) == [1, 2, 3]


async def test_an_event_without_id_or_time_is_stored_once_however_often_it_is_delivered(
    bus: Settings,
) -> None:
    bare = {"type": "test.thing.made", "source": "node", "payload": {}}
    for _ in range(2):  # the same job twice, as after a stall
        await put_raw(bus, "7", "event", json.dumps(bare).encode(), timestamp="1763200000000")
        await until(lambda: _drained(bus))
    (stored,) = rows(str(bus.database_url), "SELECT id, occurred_at FROM bus.workflow_events")
    assert stored["occurred_at"].timestamp() == 1763200000


async def test_same_id_same_body_is_one_row_and_another_body_is_a_conflict(bus: Settings) -> None:
    first, other = event(1), event(1, payload={"n": 2})
    await put_raw(bus, "1", "events", json.dumps({"events": [first, first]}).encode())
    await until(lambda: _count(bus, 1))
    again = event(1, occurredAt="2026-11-15T11:00:00Z")  # a retry stamped anew
    await put_raw(bus, "2", "events", json.dumps({"events": [again, other]}).encode())
    await until(lambda: _dead(bus, 1))
    (stored,) = rows(str(bus.database_url), "SELECT payload FROM bus.workflow_events")
    assert stored["payload"] == {"n": 1}
    (letter,) = dead_letters(str(bus.database_url))
    assert letter["reason"] == "id_conflict"
    assert json.loads(bytes(letter["raw"])) == other


async def test_the_outbox_is_not_finished_by_a_stranger_with_the_same_id(
    start_part: Any, settings: Settings
) -> None:
    """Marking the row done by id alone would lose the outbox's own event without a trace."""
    url = str(settings.database_url)
    ours = Event.parse(event(1))
    async with make_pool(url, name="test") as pool, pool.connection() as conn:
        await outbox.add_event(conn, ours)
    await put_raw(settings, "1", "event", json.dumps(event(1, payload={"n": 99})).encode())
    await start_part(open_ingress, settings)
    await until(lambda: _count(settings, 1))
    assert value(url, "SELECT state FROM bus.outbox") == "pending"
    await start_part(open_relay, settings)
    await until(lambda: _dead(settings, 1))
    assert json.loads(bytes(dead_letters(url)[0]["raw"]))["payload"] == {"n": 1}
    await until(lambda: _outbox_done(settings, 1))


POISON = {
    "deep": b'{"id":"p","payload":' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b"}",
    "very deep array": b"[" * 100_000,
    "long integer": b'{"id":"p","payload":{"n":' + b"9" * 5000 + b"}}",
    "not json": b"hello I am no JSON",
    "empty": b"",
    "not utf-8": b'{"id":"\xff\xfe"}',
    "nul": json.dumps(event(9, payload={"a": "x\x00y"})).encode(),
    "surrogate": b'{"id":"p","payload":{"a":"\\ud800"}}',
    "nan": b'{"id":"p","payload":{"a":NaN}}',
    "duplicate key": b'{"id":"p","id":"q","payload":{}}',
    "scalar": b'"text"',
    "too large": json.dumps(event(9, payload={"a": "x" * 300_000})).encode(),
    "unknown field": json.dumps(event(9, extra=1)).encode(),
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
async def test_a_poison_job_is_dead_lettered_with_its_bytes_and_the_queue_goes_on(
    bus: Settings, poison: bytes
) -> None:
    await put_raw(bus, "1", "event", poison)
    await put_raw(bus, "2", "event", json.dumps(event(1)).encode())
    await until(lambda: _count(bus, 1))
    await until(lambda: _dead(bus, 1))
    (letter,) = dead_letters(str(bus.database_url))
    assert bytes(letter["raw"]) == poison
    assert letter["reason"] == "envelope_invalid"
    assert letter["errors"][0]["message"]
    await until(lambda: _drained(bus))


# Without what would change the shape of the array around it.
INSIDE = {
    name: poison for name, poison in POISON.items() if name not in ("empty", "very deep array")
}


@pytest.mark.parametrize("poison", INSIDE.values(), ids=INSIDE.keys())
async def test_one_poison_event_does_not_take_its_batch_along(bus: Settings, poison: bytes) -> None:
    good = [json.dumps(event(n)).encode() for n in range(99)]
    body = b'{"events": [' + b", ".join([*good[:50], poison, *good[50:]]) + b"]}"
    await put_raw(bus, "1", "events", body)
    await until(lambda: _count(bus, 99))
    await until(lambda: _drained(bus))
    (letter,) = dead_letters(str(bus.database_url))
    assert bytes(letter["raw"]) == poison


async def test_an_event_past_its_ttl_and_one_that_breaks_its_schema_are_refused(
    bus: Settings,
) -> None:
    late = event(1, ttl=5)
    wrong = event(2, type="metastore.record.created", payload={"namespace": 7})
    await put_raw(bus, "1", "events", json.dumps({"events": [late, wrong]}).encode())
    await until(lambda: _dead(bus, 2))
    letters = {row["reason"]: row for row in dead_letters(str(bus.database_url))}
    assert set(letters) == {"expired", "schema_invalid"}
    paths = {e["path"] for e in letters["schema_invalid"]["errors"]}
    assert "/payload/namespace" in paths
    assert len(letters["schema_invalid"]["errors"]) > 1
    assert log_count(str(bus.database_url)) == 0


async def test_accepted_events_are_told_on_their_redis_channel(bus: Settings) -> None:
    client = Redis.from_url(str(bus.redis_url))
    channel = client.pubsub()
    await channel.psubscribe("tristore:events:test.thing.*")
    await put_raw(bus, "1", "event", json.dumps(event(5)).encode())

    async def heard() -> dict[str, Any] | None:
        return await channel.get_message(ignore_subscribe_messages=True, timeout=0.1)

    message = await until(heard)
    assert message["channel"] == b"tristore:events:test.thing.made"
    assert json.loads(message["data"])["id"] == "e-5"
    await channel.aclose()
    await client.aclose()


async def put_raw(
    settings: Settings, job_id: str, name: str, data: bytes, timestamp: str = "0"
) -> None:
    """A job exactly as a foreign client may leave it in Redis."""
    prefix = f"bull:{settings.events.queue}:"
    client = Redis.from_url(str(settings.redis_url))
    stamp = timestamp if timestamp != "0" else "1763200000000"
    fields = {"name": name, "data": data, "opts": "{}", "timestamp": stamp}
    await client.hset(f"{prefix}{job_id}", mapping=fields)
    await client.lpush(f"{prefix}wait", job_id)
    await client.zadd(f"{prefix}marker", {"0": 0})
    await client.aclose()


# Asked in a thread: housekeeping, a task of this very loop, may hold a lock on the table.
async def _count(settings: Settings, wanted: int) -> bool:
    return await asyncio.to_thread(log_count, str(settings.database_url)) == wanted


async def _dead(settings: Settings, wanted: int) -> bool:
    return len(await asyncio.to_thread(dead_letters, str(settings.database_url))) == wanted


async def _outbox_done(settings: Settings, wanted: int) -> bool:
    done = "SELECT count(*) FROM bus.outbox WHERE state = 'done'"
    return bool(await asyncio.to_thread(value, str(settings.database_url), done) == wanted)


async def _drained(settings: Settings) -> bool:
    """Nothing waits, nothing is stuck in `active`, nothing was buried in `failed`."""
    client = Redis.from_url(str(settings.redis_url))
    prefix = f"bull:{settings.events.queue}:"
    left = await client.llen(f"{prefix}wait") + await client.llen(f"{prefix}active")
    left += await client.zcard(f"{prefix}failed")
    await client.aclose()
    return left == 0
