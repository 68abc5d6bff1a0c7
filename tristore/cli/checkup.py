"""The checks behind `tristore doctor`: each says what it found and what to do about it."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg

from tristore.cli.check import FAIL, OK, WARN, Check, Patient, graded
from tristore.cli.checkup_workers import workers
from tristore.config import INLINE
from tristore.db import migrate
from tristore.db.pool import Connection
from tristore.errors import StartRefused, TristoreError, Unavailable
from tristore.events.admin import health, soundness
from tristore.events.queue import EventQueue
from tristore.filestore import mounts
from tristore.local.java import java_home

_OLD_SECONDS = 60
_FAR_BEHIND = 100_000
_GIB = 1024**3


async def examine(patient: Patient) -> AsyncIterator[Check]:
    """Every check, as it is done; those that need a server that is away are left out."""
    async for check in _database(patient):
        yield check
    async for check in _redis(patient.redis_url, patient.settings.events.queue):
        yield check
    yield disk(patient.folder)
    yield await asyncio.to_thread(_java, patient.settings.java_home)


async def _database(patient: Patient) -> AsyncIterator[Check]:
    url = patient.database_url
    try:
        conn = await psycopg.AsyncConnection.connect(
            url, connect_timeout=5, application_name="tristore-doctor"
        )
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[-1]
        step = "start Postgres, or correct TRISTORE_DATABASE_URL"
        yield Check("postgres", FAIL, reason, step)
        return
    async with conn:
        version = conn.info.server_version // 10_000
        yield Check("postgres", OK, f"answers, version {version}")
        revision = await asyncio.to_thread(migrate.current, url)
        if revision != migrate.head():
            step = "run: tristore migrate"
            yield Check("schema", FAIL, f"at {revision}, newest is {migrate.head()}", step)
            return
        yield Check("schema", OK, f"at {revision}")
        await conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        async for check in _bus(conn, patient):
            yield check


async def _bus(conn: Connection, patient: Patient) -> AsyncIterator[Check]:
    if wrong := await soundness.faults(conn):
        step = "stop the writers and restore from a backup; readers must not trust this log"
        yield Check("log", FAIL, "; ".join(wrong), step)
    found = await health.read(conn)
    if not wrong:
        yield Check("log", OK, f"at {found['lastSequence']}, no gap in the sample")
    for check in workers(patient, found["parts"], len(await mounts.every(conn))):
        yield check
    for check in _waiting(found):
        yield check


def _waiting(found: dict[str, Any]) -> list[Check]:
    outbox, letters = found["outbox"], found["deadLetters"]
    age = outbox["oldestPendingSeconds"] or 0
    behind = [c for c in found["consumers"] if c["lag"] > _FAR_BEHIND or c["lastError"]]
    named = ", ".join(f"{c['consumer']} {c['lag']} behind" for c in behind or found["consumers"])
    return [
        graded(
            "outbox",
            WARN if age > _OLD_SECONDS else OK,
            f"{outbox['pending']} waiting, {outbox['enqueued']} under way, oldest {age:.0f} s",
            "see that relay, ingress and Redis run",
        ),
        graded(
            "leases",
            WARN if outbox["stuckLeases"] else OK,
            f"{outbox['stuckLeases']} ran out and were not taken back",
            "the relay takes them back; see that it runs",
        ),
        graded(
            "dead letters",
            WARN if letters["open"] else OK,
            f"{letters['open']} open, {letters['lastHour']} in the last hour",
            "look: tristore dlq list",
        ),
        graded("consumers", WARN if behind else OK, named or "none", "see why they do not read"),
    ]


async def _redis(url: str, queue_name: str) -> AsyncIterator[Check]:
    if url == INLINE:
        yield Check("redis", OK, "not used: events are taken in without a queue")
        return
    queue = EventQueue(url, queue_name)
    try:
        await queue.ping()
        yield Check("redis", OK, f"answers, {await queue.depth()} jobs wait")
        yield await _eviction(queue)
        yield await _persistence(queue)
    except (Unavailable, ValueError) as error:
        yield Check("redis", FAIL, str(error), "start Redis, or correct TRISTORE_REDIS_URL")
    finally:
        await queue.close()


async def _eviction(queue: EventQueue) -> Check:
    try:
        await queue.check()
    except StartRefused as refusal:
        return Check("redis eviction", FAIL, str(refusal), "set maxmemory-policy noeviction")
    return Check("redis eviction", OK, "noeviction")


async def _persistence(queue: EventQueue) -> Check:
    if await queue.outlives_a_restart():
        return Check("redis persistence", OK, "append-only file")
    detail = "off: jobs put straight into the queue are lost when Redis restarts"
    return Check("redis persistence", WARN, detail, "set appendonly yes")


def disk(folder: Path) -> Check:
    """The disk of the data folder, or of where it will be."""
    standing = next(each for each in [folder, *folder.parents] if each.exists())
    usage = shutil.disk_usage(standing)
    detail = f"{usage.free / _GIB:.1f} GiB free of {usage.total / _GIB:.1f} at {standing}"
    if usage.free < _GIB // 2:
        return Check("disk", FAIL, detail, "free some space: Postgres stops when it is full")
    if usage.free < 2 * _GIB or usage.free < usage.total // 20:
        return Check("disk", WARN, detail, "free some space soon")
    return Check("disk", OK, detail)


def _java(configured: str | None) -> Check:
    try:
        with tempfile.TemporaryDirectory() as folder:
            java_home(configured, Path(folder))
    except TristoreError as error:
        return Check("java", WARN, str(error), "only the Spark pipeline needs it")
    return Check("java", OK, "found for Spark")
