"""A few events are stored in one round trip, on terms: the schemas they passed still hold, and
nothing is suspected of killing its worker."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.database import dead_letters, rows
from tristore.db.pool import Pool, make_pool
from tristore.events import suspects
from tristore.events.batch import Batch
from tristore.events.ingress import EventIngressWorker
from tristore.events.rawjob import RawJob
from tristore.events.registry import schema_store
from tristore.events.registry.registry import Registry

TEXT: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "string"}}}
NUMBER: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
STORED = "SELECT id, schema_version FROM bus.workflow_events ORDER BY ingress_sequence"


@pytest.fixture
async def pool(database_url: str) -> AsyncIterator[Pool]:
    async with make_pool(database_url, name="test") as pool:
        yield pool


@pytest.fixture
async def worker(pool: Pool) -> EventIngressWorker:
    """One that has asked once and was told that nothing is suspected."""
    worker = EventIngressWorker(pool, Registry.of_catalogue(), None)
    await worker.refresh()
    return worker


def job(event_id: str, **fields: Any) -> RawJob:
    made = {"id": event_id, "type": "test.thing.made", "source": "test", "payload": {"n": 1}}
    made |= {"occurredAt": "2026-11-15T10:00:00Z", **fields}
    return RawJob(event_id, "event", json.dumps(made).encode(), timestamp_ms=0, stalled=0)


async def examined(worker: EventIngressWorker, *jobs: RawJob) -> Batch:
    batch = await worker.examine(jobs)
    assert batch.revision is not None, "nobody need have asked before"
    return batch


async def register(pool: Pool, version: int, schema: dict[str, Any]) -> None:
    async with pool.connection() as conn, conn.transaction():
        await schema_store.lock(conn)
        await schema_store.add(conn, "test.thing.made", version, "active", schema, "test")


async def test_a_schema_that_came_in_between_holds(
    worker: EventIngressWorker, pool: Pool, database_url: str
) -> None:
    batch = await examined(worker, job("a"), job("b", payload={"n": "text"}))
    await register(pool, 1, TEXT)
    await worker.settle(batch)
    assert rows(database_url, STORED) == [{"id": "b", "schema_version": 1}]
    (letter,) = dead_letters(database_url)
    assert (letter["event_id"], letter["reason"]) == ("a", "schema_invalid")


async def test_an_event_that_names_no_version_gets_the_newest(
    worker: EventIngressWorker, pool: Pool, database_url: str
) -> None:
    await register(pool, 1, NUMBER)
    await worker.refresh()
    batch = await examined(worker, job("a"), job("b", schemaVersion=1))
    await register(pool, 2, {**NUMBER, "minProperties": 1})
    await worker.settle(batch)
    found = {row["id"]: row["schema_version"] for row in rows(database_url, STORED)}
    assert found == {"a": 2, "b": 1}


async def test_what_is_stored_is_not_refused_by_a_later_schema(
    worker: EventIngressWorker, pool: Pool, database_url: str
) -> None:
    """As after a commit whose answer was lost: the same batch is settled again."""
    batch = await examined(worker, job("a"))
    await worker.settle(batch)
    await register(pool, 1, TEXT)
    await worker.settle(batch)
    assert rows(database_url, STORED) == [{"id": "a", "schema_version": None}]
    assert dead_letters(database_url) == []


async def test_a_killer_condemned_in_between_is_not_stored(
    worker: EventIngressWorker, pool: Pool, database_url: str
) -> None:
    deadly = job("killer")
    batch = await examined(worker, deadly, job("good"))
    async with pool.connection() as conn:
        for _ in range(suspects.DEADLY + 1):
            await suspects.accuse(conn, suspects.hash_of(deadly.data))
    await worker.settle(batch)
    assert [row["id"] for row in rows(database_url, STORED)] == ["good"]
    assert [letter["reason"] for letter in dead_letters(database_url)] == ["crash_loop"]
