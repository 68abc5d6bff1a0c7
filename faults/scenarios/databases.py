"""A Postgres that falls over, terminates its backends, or is held by a stranger."""

import asyncio
import os
import signal
from contextlib import suppress

import psycopg
from psycopg_pool import PoolTimeout

from faults.process import Process
from faults.stage import BUS, Outcome, Stage
from tests.support.database import log_count
from tests.support.publishing import Ledger, digest
from tests.support.waiting import wait_until
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.events import outbox
from tristore.events.envelope import Event
from tristore.events.sdk.subscriber import Subscriber
from tristore.local.postgres import EmbeddedPostgres

_AWAY = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)
_TERMINATE = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database()
        AND application_name IN ('tristore-relay', 'tristore-ingress', 'tristore-listener')
"""


def fallen_over(stage: Stage) -> Outcome:
    """F15. Stopped without warning and started again, several times, while a store publishes and
    a subscriber reads: nothing acknowledged is lost, and every part heals by itself."""
    with stage.own_postgres() as (there, server), there.part("work", BUS) as bus:
        ledger, seen = asyncio.run(_publish_and_read(there, server, bus))
        there.settle()
        assert bus.poll() is None
        there.check(ledger)
    assert seen == list(range(1, len(ledger) + 1))
    return Outcome(len(ledger), stage.faults)


async def _publish_and_read(
    stage: Stage, server: EmbeddedPostgres, bus: Process
) -> tuple[Ledger, list[int]]:
    ledger: Ledger = {}
    seen: list[int] = []
    over = asyncio.Event()
    publishing = asyncio.create_task(_publish(stage, ledger, over))
    reading = asyncio.create_task(_read(stage.settings, seen))
    try:
        for fall in range(1, stage.faults + 1):
            while len(ledger) < fall * stage.events / (stage.faults + 1):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(_fall_over, server, bus)
        while len(ledger) < stage.events:
            await asyncio.sleep(0.01)
        over.set()
        await publishing
        async with asyncio.timeout(60):
            while len(seen) < len(ledger):
                await asyncio.sleep(0.05)
    finally:
        for task in (publishing, reading):
            task.cancel()
        await asyncio.gather(publishing, reading, return_exceptions=True)
    return ledger, seen


async def _publish(stage: Stage, ledger: Ledger, over: asyncio.Event) -> None:
    """Events whose transaction was confirmed; without an answer the same ones are sent again."""
    async with make_pool(stage.url, name="publisher", max_size=1) as pool:
        while not over.is_set():
            made = [Event.make("test.thing.made", {"n": n}, source="faults") for n in range(5)]
            confirmed = False
            while not confirmed:
                with suppress(*_AWAY):
                    async with pool.connection() as conn, conn.transaction():
                        await outbox.offer(conn, made)
                    confirmed = True
            ledger |= {event.id: digest(event.payload) for event in made}
            await asyncio.sleep(0.02)


async def _read(settings: Settings, seen: list[int]) -> None:
    async with Subscriber("faults", settings=settings) as subscriber:
        async for event in subscriber:
            seen.append(event.ingress_sequence)


def _fall_over(server: EmbeddedPostgres, bus: Process) -> None:
    """Stays down, the first time, until the bus has noticed; later it is back at once."""
    assert server.pid is not None
    os.kill(server.pid, signal.SIGQUIT)
    wait_until(lambda: server.poll() is not None)
    wait_until(lambda: bus.says("bus away") or bus.poll() is not None)
    server.start()


def backends_terminated(stage: Stage) -> Outcome:
    """F17. Every connection of the bus is terminated again and again in the middle of its work."""
    ledger: Ledger = {}
    cuts = 0
    with stage.part("work", BUS) as bus:
        for _ in range(10 * stage.faults):
            ledger |= stage.commit(max(stage.events // (10 * stage.faults), 1))
            cuts += wait_until(lambda: stage.value(_TERMINATE))
        stage.settle()
        assert bus.poll() is None
    stage.check(ledger)
    return Outcome(len(ledger), cuts)


def held_by_a_stranger(stage: Stage) -> Outcome:
    """F18. A stranger's transaction that stays open, with a row of its own in the outbox, delays
    nobody else's event; its own follow when it commits."""
    stranger = Event.make("test.thing.made", {"n": -1}, source="stranger")
    with stage.part("work", BUS):
        ledger = asyncio.run(_publish_beside(stage, stranger))
        stage.settle()
    stage.check(ledger | {stranger.id: digest(stranger.payload)})
    return Outcome(len(ledger) + 1, 1)


async def _publish_beside(stage: Stage, stranger: Event) -> Ledger:
    async with make_pool(stage.url, name="stranger", max_size=1) as pool:
        async with pool.connection() as conn, conn.transaction():
            await conn.execute("CREATE TABLE public.of_a_stranger ()")
            await outbox.add_event(conn, stranger)
            ledger = await asyncio.to_thread(stage.commit)
            await asyncio.to_thread(
                wait_until, lambda: log_count(stage.url) == len(ledger), seconds=50
            )
    return ledger
