"""Commits events to the outbox and keeps the ledger of what was acknowledged."""

import hashlib
import json
from typing import Any

from bullmq import Queue

from tests.support.database import rows
from tristore.db.pool import make_pool
from tristore.events import outbox
from tristore.events.envelope import Event

Ledger = dict[str, str]


def digest(payload: Any) -> str:
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()


async def commit_events(database_url: str, count: int, *, per_transaction: int = 20) -> Ledger:
    """Events whose transaction committed: each must be stored or dead-lettered, once."""
    ledger: Ledger = {}
    async with make_pool(database_url, name="publisher", max_size=1) as pool:
        for start in range(0, count, per_transaction):
            async with pool.connection() as conn, conn.transaction():
                for number in range(start, min(start + per_transaction, count)):
                    event = Event.make("test.thing.made", {"n": number}, source="ledger")
                    await outbox.add_event(conn, event)
                    ledger[event.id] = digest(event.payload)
    return ledger


async def enqueue_events(redis_url: str, queue_name: str, count: int) -> Ledger:
    """Events put straight into BullMQ, ten a job, by a client that knows nothing of Tristore."""
    made = [Event.make("test.thing.made", {"q": n}, source="queue") for n in range(count)]
    queue = Queue(queue_name, {"connection": redis_url})
    for start in range(0, count, 10):
        batch = [event.to_json() for event in made[start : start + 10]]
        await queue.add("events", {"events": batch})
    await queue.close()
    return {event.id: digest(event.payload) for event in made}


def check_ledger(database_url: str, ledger: Ledger) -> None:
    """Nothing lost, nothing twice, nothing invented, no gap; and the run was not empty."""
    assert ledger
    stored = rows(
        database_url, "SELECT id, payload, ingress_sequence FROM bus.workflow_events ORDER BY 3"
    )
    assert {row["id"]: digest(row["payload"]) for row in stored} == ledger
    assert [row["ingress_sequence"] for row in stored] == list(range(1, len(ledger) + 1))
    left = rows(database_url, "SELECT event_id FROM bus.outbox WHERE state <> 'done'")
    assert left == []
