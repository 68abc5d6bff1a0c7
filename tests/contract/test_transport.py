"""What the bus promises, whether events travel through BullMQ or inline."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from tests.support.database import dead_letters, log_count, rows, value
from tests.support.parts import part
from tests.support.publishing import Ledger, check_ledger, commit_events
from tests.support.waiting import wait_until
from tristore.config import INLINE, Settings
from tristore.db.pool import make_pool
from tristore.events import outbox
from tristore.events.envelope import Event

OPEN = "SELECT count(*) FROM bus.outbox WHERE state <> 'done'"


@pytest.fixture(params=["bullmq", "inline"])
def transport(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    if request.param == "bullmq":
        return settings
    return settings.model_copy(update={"redis_url": INLINE})


@pytest.fixture
def bus(transport: Settings) -> Iterator[Settings]:
    """The processes that carry events: a relay, and an ingress worker where there is a queue."""
    with running(transport):
        yield transport


def running(settings: Settings, **extra: str) -> ExitStack:
    stack = ExitStack()
    stack.enter_context(part(settings, "work", "relay", **extra))
    if settings.redis_url != INLINE:
        stack.enter_context(part(settings, "work", "ingress", **extra))
    return stack


def settled(settings: Settings) -> bool:
    return bool(value(str(settings.database_url), OPEN) == 0)


def offer(settings: Settings, *events: Event) -> None:
    async def add() -> None:
        async with make_pool(str(settings.database_url), name="test", max_size=1) as pool:
            async with pool.connection() as conn, conn.transaction():
                for event in events:
                    await outbox.add_event(conn, event)

    asyncio.run(add())


def make(**fields: Any) -> Event:
    kind = fields.pop("type", "test.thing.made")
    return Event.make(kind, fields.pop("payload", {"n": 1}), source="contract", **fields)


def test_every_committed_event_is_stored_once_in_one_order(bus: Settings) -> None:
    ledger = asyncio.run(commit_events(str(bus.database_url), 500))
    wait_until(lambda: settled(bus))
    check_ledger(str(bus.database_url), ledger)


def test_what_is_stored_is_what_was_published(bus: Settings) -> None:
    event = make(
        payload={"big": 2**53 + 1, "text": "ü\u2028", "deep": [{"a": None}], "f": 0.1},
        correlationId="c-9",
        metadata={"traceparent": "00-1"},
        ttl=3_600_000,
    )
    offer(bus, event)
    wait_until(lambda: settled(bus))
    (row,) = rows(str(bus.database_url), "SELECT * FROM bus.workflow_events")
    assert row["payload"] == event.payload
    assert row["metadata"] == {"traceparent": "00-1"}
    assert (row["correlation_id"], row["ttl_ms"]) == ("c-9", 3_600_000)
    assert row["occurred_at"] == event.occurred_at


def test_bad_events_are_dead_lettered_with_reasons_and_leave_the_outbox(bus: Settings) -> None:
    late = make(id="late", ttl=1, occurredAt="2026-01-01T00:00:00Z")
    wrong = make(id="wrong", type="metastore.record.deleted", payload={"namespace": 1})
    offer(bus, make(id="first"), late, wrong, make(id="last"))
    wait_until(lambda: settled(bus))
    reasons = {row["event_id"]: row["reason"] for row in dead_letters(str(bus.database_url))}
    assert reasons == {"late": "expired", "wrong": "schema_invalid"}
    assert log_count(str(bus.database_url)) == 2


def test_the_same_event_again_is_no_second_row(bus: Settings) -> None:
    event = make(id="once")
    offer(bus, event)
    wait_until(lambda: settled(bus))
    with psycopg.connect(str(bus.database_url), autocommit=True) as conn:
        conn.execute("UPDATE bus.outbox SET state = 'pending'")  # as after a lost answer
    wait_until(lambda: settled(bus))
    assert log_count(str(bus.database_url)) == 1
    assert dead_letters(str(bus.database_url)) == []


@pytest.mark.parametrize("point", ["relay.after_claim", "ingress.before_commit"])
def test_a_killed_process_loses_nothing(transport: Settings, point: str) -> None:
    ledger = asyncio.run(commit_events(str(transport.database_url), 200))
    with running(transport, FAILPOINTS=f"{point}:exit9:1"):
        pass_by = "SELECT count(*) FROM bus.outbox WHERE attempt > 0"
        wait_until(lambda: value(str(transport.database_url), pass_by) > 0)
    with running(transport):
        wait_until(lambda: settled(transport))
    check_ledger(str(transport.database_url), ledger)


def test_postgres_connections_cut_in_the_middle_lose_nothing(bus: Settings) -> None:
    """Every connection of the platform is terminated again and again while events flow."""
    url = str(bus.database_url)
    cut = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'tristore-%%'"
        " AND application_name <> 'tristore-publisher'"
    )
    ledger: Ledger = {}
    for _ in range(10):
        ledger |= asyncio.run(commit_events(url, 50))
        assert wait_until(lambda: value(url, cut)) >= 1
    wait_until(lambda: settled(bus))
    check_ledger(url, ledger)
