"""The subscriber by database URL: nothing skipped, little repeated, effects exactly once."""

import asyncio
import subprocess
import sys
from typing import Any

import psycopg
import pytest

from tests.support.database import rows, value
from tests.support.waiting import until
from tristore import Subscriber
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.errors import EpochChanged, InvalidQuery, InvalidRequest, PositionGone, StartRefused
from tristore.events import cursors, log
from tristore.events.envelope import Event
from tristore.events.log import Stored

POSITION = "SELECT sequence FROM bus.cursors WHERE consumer = %s"
# Says what it handled, and is killed by its own hand before it could say so to the platform.
PROGRAM = """
import asyncio, os, signal, sys
from tristore import Subscriber

async def main(url, most):
    async with Subscriber("worker", url=url, batch=20) as subscriber:
        async for event in subscriber:
            print(event.ingress_sequence, flush=True)
            most -= 1
            if not most:
                os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


async def append(database_url: str, count: int, type: str = "test.thing.made") -> None:
    """Events in the log, as ingress puts them there."""
    events = [Event.make(type, {"n": n}, source="test") for n in range(count)]
    async with make_pool(database_url, name="test") as pool, pool.connection() as conn:
        async with conn.transaction():
            await log.append(conn, events, [event.body_hash() for event in events])
        await conn.execute("NOTIFY tristore_log")


async def take(subscriber: Subscriber, count: int) -> list[int]:
    """So many events, all but the last one acknowledged by asking for the next."""
    async with asyncio.timeout(60):
        return [(await anext(subscriber)).ingress_sequence for _ in range(count)]


def execute(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(statement)


async def test_it_reads_in_order_and_goes_on_where_it_was(database_url: str) -> None:
    await append(database_url, 250)
    async with Subscriber("worker", url=database_url, batch=100) as subscriber:
        assert await take(subscriber, 120) == list(range(1, 121))
    assert value(database_url, POSITION, "worker") == 119
    async with Subscriber("worker", url=database_url, batch=100) as subscriber:
        assert await take(subscriber, 131) == list(range(120, 251))
        waiting = asyncio.create_task(take(subscriber, 1))
        await append(database_url, 1)
        assert await waiting == [251]


async def test_an_acknowledged_event_does_not_come_again(database_url: str) -> None:
    await append(database_url, 3)
    async with Subscriber("worker", url=database_url) as subscriber:
        async for event in subscriber:
            await subscriber.ack(event)
            assert value(database_url, POSITION, "worker") == event.ingress_sequence
            if event.ingress_sequence == 2:
                break
    async with Subscriber("worker", url=database_url) as subscriber:
        assert await take(subscriber, 1) == [3]


async def test_a_reader_killed_before_it_acknowledged_repeats_a_batch_at_most(
    database_url: str,
) -> None:
    await append(database_url, 300)
    handled: list[int] = []
    for most in (1, 7, 45, 60, 20, 100):
        argv = [sys.executable, "-c", PROGRAM, database_url, str(most)]
        run = await asyncio.to_thread(subprocess.run, argv, capture_output=True, timeout=60)
        assert run.returncode == -9
        found = [int(line) for line in run.stdout.split()]
        start = (handled[-1] if handled else 0) + 1
        assert start - 20 <= found[0] <= start
        assert found == list(range(found[0], found[0] + most))
        handled += found
    assert set(handled) == set(range(1, max(handled) + 1))


async def test_only_the_wanted_types_come_and_the_position_passes_the_others(
    database_url: str,
) -> None:
    await append(database_url, 30, "other.thing.made")
    await append(database_url, 2, "orders.order_line.placed")
    await append(database_url, 2, "orders.orderxline.placed")
    await append(database_url, 30, "other.thing.made")
    wanted = ["orders.order_line.placed", "billing.*"]
    async with Subscriber("worker", wanted, url=database_url) as subscriber:
        assert await take(subscriber, 2) == [31, 32]
        waiting = asyncio.create_task(take(subscriber, 1))
        await append(database_url, 1, "billing.invoice.sent")
        assert await waiting == [65]
    assert value(database_url, POSITION, "worker") == 64
    stored = value(database_url, "SELECT types FROM bus.cursors WHERE consumer = 'worker'")
    assert stored == sorted(wanted)


async def test_a_new_reader_may_start_now(database_url: str) -> None:
    await append(database_url, 10)
    async with Subscriber("late", url=database_url, from_="now") as subscriber:
        waiting = asyncio.create_task(take(subscriber, 1))

        async def started() -> Any:
            return value(database_url, POSITION, "late")

        assert await until(started) == 10
        await append(database_url, 1)
        assert await waiting == [11]


async def test_a_position_that_is_gone_or_of_another_history_is_an_error(database_url: str) -> None:
    await append(database_url, 50)
    async with Subscriber("worker", url=database_url, batch=5) as subscriber:
        await take(subscriber, 6)
    execute(database_url, "DELETE FROM bus.workflow_events WHERE ingress_sequence <= 20")
    execute(database_url, "UPDATE bus.ingress_head SET earliest = 21")
    async with Subscriber("worker", url=database_url) as subscriber:
        with pytest.raises(PositionGone) as gone:
            await take(subscriber, 1)
        assert gone.value.earliest == 21
        await subscriber.forget()
        assert await take(subscriber, 2) == [21, 22]
    execute(database_url, "UPDATE bus.ingress_head SET epoch = gen_random_uuid()")
    async with Subscriber("worker", url=database_url) as subscriber:
        with pytest.raises(EpochChanged, match="restored"):
            await take(subscriber, 1)
        with pytest.raises(EpochChanged):
            async with make_pool(database_url, name="test") as pool, pool.connection() as conn:
                await cursors.advance(conn, "worker", 30)


async def test_a_lost_connection_is_an_interruption_and_no_end(database_url: str) -> None:
    await append(database_url, 200)
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with Subscriber("worker", url=database_url, batch=10) as subscriber:
        found: list[int] = []
        for _ in range(4):
            found += await take(subscriber, 50)
            execute(database_url, cut)
        assert found == list(range(1, 201))


async def effect(conn: Any, event: Stored) -> None:
    await conn.execute("INSERT INTO effects VALUES (%s)", [event.ingress_sequence])


async def test_effect_and_position_commit_together_or_not_at_all(database_url: str) -> None:
    execute(database_url, "CREATE TABLE effects (sequence bigint)")
    await append(database_url, 5)
    async with Subscriber("worker", url=database_url) as subscriber:
        for _ in range(2):
            async with subscriber.handling() as (event, conn):
                await effect(conn, event)
        with pytest.raises(ZeroDivisionError):
            async with subscriber.handling() as (event, conn):
                await effect(conn, event)
                raise ZeroDivisionError
        assert value(database_url, POSITION, "worker") == 2
        for _ in range(3):
            async with subscriber.handling() as (event, conn):
                await effect(conn, event)
    found = [row["sequence"] for row in rows(database_url, "SELECT * FROM effects ORDER BY 1")]
    assert found == [1, 2, 3, 4, 5]


async def test_readers_of_one_name_share_the_work_and_no_effect_happens_twice(
    database_url: str,
) -> None:
    execute(database_url, "CREATE TABLE effects (sequence bigint)")
    await append(database_url, 120)

    async def work(batch: int) -> None:
        async with Subscriber("worker", url=database_url, batch=batch) as subscriber:
            while True:
                async with subscriber.handling() as (event, conn):
                    await effect(conn, event)

    workers = [asyncio.create_task(work(batch)) for batch in (3, 10, 50)]

    async def finished() -> bool:
        return bool(value(database_url, "SELECT count(*) >= 120 FROM effects"))

    await until(finished)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    found = [row["sequence"] for row in rows(database_url, "SELECT * FROM effects ORDER BY 1")]
    assert found == list(range(1, 121))


async def test_wrong_use_is_refused_with_what_to_do(database_url: str) -> None:
    nowhere = Settings(database_url=None, redis_url=None, url=None)
    with pytest.raises(StartRefused, match="TRISTORE_DATABASE_URL"):
        await anext(Subscriber("worker", settings=nowhere))
    for name in ("", "a b", "x" * 101, "ä"):
        with pytest.raises(InvalidQuery, match="1 to 100"):
            Subscriber(name, url=database_url)
    with pytest.raises(InvalidQuery, match=r"service\.entity\.action"):
        Subscriber("worker", ["%"], url=database_url)
    over_http = Subscriber("worker", http="http://127.0.0.1:1")
    with pytest.raises(InvalidRequest, match="handling"):
        async with over_http.handling():
            pass
    await over_http.close()
