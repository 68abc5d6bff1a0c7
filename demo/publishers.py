"""Three ways onto the bus: a store's transaction, HTTP, and a plain BullMQ client."""

import asyncio
from typing import Any

import httpx
from bullmq import Queue

from tristore.db.pool import make_pool
from tristore.events import outbox
from tristore.events.payloads import MetastoreRecordCreated

BAD = [
    {"id": "bad-1", "type": "demo.sensor.read", "source": "node"},
    {"id": "bad-2", "type": "Not A Type", "source": "node", "payload": {}},
    {
        "id": "bad-3",
        "type": "metastore.record.created",
        "source": "node",
        "payload": {"namespace": 7},
    },
]


def by_transaction(database_url: str, first: int, count: int) -> None:
    """Events that exist because the transaction that caused them committed."""
    asyncio.run(_by_transaction(database_url, first, count))


async def _by_transaction(database_url: str, first: int, count: int) -> None:
    async with make_pool(database_url, name="demo", max_size=1) as pool:
        async with pool.connection() as conn, conn.transaction():
            for number in range(first, first + count):
                await outbox.add(conn, _record(number), source="demo.store", correlation_id="demo")


def by_http(url: str, token: str, first: int, count: int) -> None:
    body = [_reading(number) for number in range(first, first + count)]
    headers = {"Authorization": f"Bearer {token}"}
    httpx.post(f"{url}/v1/events", json=body, headers=headers).raise_for_status()


def by_queue(redis_url: str, queue_name: str, first: int, count: int) -> None:
    """Good events with three bad ones among them, in one job, as any BullMQ client may send."""
    good = [_reading(number) for number in range(first, first + count)]
    asyncio.run(_by_queue(redis_url, queue_name, [*good[:10], *BAD, *good[10:]]))


async def _by_queue(redis_url: str, queue_name: str, events: list[dict[str, Any]]) -> None:
    queue = Queue(queue_name, {"connection": redis_url})
    await queue.add("events", {"events": events})
    await queue.close()


def _record(number: int) -> MetastoreRecordCreated:
    return MetastoreRecordCreated(
        namespace="demo",
        key=f"file-{number}",
        version=1,
        tags=("raw",),
        actor="demo",
        changed=("tags",),
    )


def _reading(number: int) -> dict[str, Any]:
    return {
        "id": f"reading-{number}",
        "type": "demo.sensor.read",
        "source": "demo.sensors",
        "payload": {"sensor": number % 7, "celsius": 20 + number % 13 / 2},
    }
