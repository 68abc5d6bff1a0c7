"""Filestore events applied to the metastore: how many a second, and how late at 500 a second."""

import asyncio
import time
from typing import Any

import orjson
import psycopg

from bench.figure import Figure
from bench.servers import part, percentile, servers, wait_until
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.db.wakeups import OUTBOX
from tristore.events import log, outbox
from tristore.events.envelope import Event
from tristore.events.payloads import FilestoreNodeCreated, FilestoreNodeUpdated

PAGE = 500
RATE, PER_COMMIT = 500, 25
BARE = """
    INSERT INTO metastore.records AS r (namespace, key, metadata, created_by, updated_by)
    SELECT 'bare', key, metadata, 'bench', 'bench'
    FROM jsonb_to_recordset(%s::jsonb) AS b (key text, metadata jsonb)
    ON CONFLICT (namespace, key) DO UPDATE
    SET metadata = excluded.metadata, version = r.version + 1, updated_at = now()
"""
NAMESPACE = (
    "INSERT INTO metastore.namespaces (name, created_by, updated_by) VALUES ('bare', '', '')"
)
POSITION = "SELECT sequence FROM bus.cursors WHERE consumer = 'tristore.metastore.sync'"
LATE = """
    SELECT extract(epoch FROM a.at - o.created_at)::float8
    FROM metastore.record_audits a
    JOIN bus.workflow_events w
        ON w.type = 'filestore.node.created' AND w.payload ->> 'nodeId' = a.key
    JOIN bus.outbox o ON o.event_id = w.id
    WHERE a.key LIKE 'late-%' AND a.version = 1
"""


def run(scale: float = 1.0) -> list[Figure]:
    return [applied(int(50_000 * scale)), late(int(5_000 * scale))]


def applied(count: int) -> Figure:
    """A backlog: every node is made, then changed once."""
    with servers() as (settings, _):
        made = [node(n % (count // 2), 1 + n // (count // 2)) for n in range(count)]
        limit = bare_upsert(settings, made)
        asyncio.run(append(settings, made))
        with part(settings, "work", "sync"):
            first = wait_until(lambda: position(settings) > 0)
            begun = position(settings)
            seconds = wait_until(lambda: position(settings) == count) - first
    name = f"filestore sync, {count:,} events applied"
    rate = (count - begun) / seconds
    return Figure(name, rate, "events/s", limit, "bulk upsert in SQL, records alone", "5,000/s")


def late(count: int) -> Figure:
    """From the commit of an event to the writing of its record, relay and ingress between."""
    with servers() as (settings, _):
        with part(settings, "work", "relay,ingress"), part(settings, "work", "sync"):
            asyncio.run(arrive(settings, 100, "warm-"))
            wait_until(lambda: written(settings, "warm-") == 100)
            asyncio.run(arrive(settings, count, "late-"))
            wait_until(lambda: written(settings, "late-") == count)
        with psycopg.connect(str(settings.database_url)) as conn:
            seconds = [row[0] for row in conn.execute(LATE).fetchall()]
    name = f"filestore sync, p99 from event to record at {RATE}/s"
    return Figure(name, 1000 * percentile(seconds, 0.99), "ms", None, "", "1,000 ms")


def node(
    number: int, version: int, prefix: str = "n"
) -> FilestoreNodeCreated | FilestoreNodeUpdated:
    kind = FilestoreNodeCreated if version == 1 else FilestoreNodeUpdated
    return kind(
        node_id=f"{prefix}{number}",
        mount="bench",
        path=f"landing/{number % 100}/file-{number}.parquet",
        kind="file",
        version=version,
        size_bytes=1000 + number,
        size_delta=1000,
        state="active",
        journal_id=number,
        command="put",
        checksum=f"sha256:{number:064x}",
    )


def bare_upsert(settings: Settings, made: list[Any]) -> float:
    """Events per second if all they did was to put their object into a record."""
    rows = [{"key": n.node_id, "metadata": {"filestore": n.to_json()}} for n in made]
    with psycopg.connect(str(settings.database_url)) as conn:
        conn.execute(NAMESPACE)
        started = time.perf_counter()
        for start in range(0, len(rows), PAGE):
            conn.execute(BARE, [orjson.dumps(rows[start : start + PAGE]).decode()])
            conn.commit()
        seconds = time.perf_counter() - started
        conn.execute("DELETE FROM metastore.records")
    return len(rows) / seconds


async def append(settings: Settings, made: list[Any]) -> None:
    events = [
        Event.make(n.TYPE, n.to_json(), source="filestore.api", schemaVersion=1) for n in made
    ]
    async with make_pool(str(settings.database_url), name="bench", max_size=1) as pool:
        for start in range(0, len(events), 1000):
            page = events[start : start + 1000]
            async with pool.connection() as conn, conn.transaction():
                await log.append(conn, page, [event.body_hash() for event in page])


async def arrive(settings: Settings, count: int, prefix: str) -> None:
    """A store that commits some events at a time, at a steady rate."""
    async with make_pool(str(settings.database_url), name="bench", max_size=1) as pool:
        async with pool.connection() as conn:
            started = time.perf_counter()
            for start in range(0, count, PER_COMMIT):
                told = [(node(n, 1, prefix), None) for n in range(start, start + PER_COMMIT)]
                async with conn.transaction():
                    await outbox.add_many(conn, told, source="filestore.api")
                await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
                await asyncio.sleep(
                    max(0, started + (start + PER_COMMIT) / RATE - time.perf_counter())
                )


def position(settings: Settings) -> int:
    with psycopg.connect(str(settings.database_url)) as conn:
        row = conn.execute(POSITION).fetchone()
    return int(row[0]) if row else 0


def written(settings: Settings, prefix: str) -> int:
    with psycopg.connect(str(settings.database_url)) as conn:
        row = conn.execute(
            "SELECT count(*) FROM metastore.records WHERE key LIKE %s", [f"{prefix}%"]
        ).fetchone()
    return int(row[0]) if row else 0
