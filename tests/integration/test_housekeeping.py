"""What is removed, and that nothing is which somebody still needs."""

import asyncio
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest

from tests.support.database import rows, value
from tests.support.publishing import commit_events
from tristore.config import EventsSettings
from tristore.db.pool import make_pool
from tristore.events import log
from tristore.events.envelope import Event
from tristore.events.housekeeping import Housekeeping

TODAY = datetime.now(UTC).date()


def keep_house(database_url: str, today: date, **settings: object) -> None:
    async def run() -> None:
        async with make_pool(database_url, name="house", max_size=1) as pool:
            await Housekeeping(pool, EventsSettings.model_validate(settings)).keep_house(today)

    asyncio.run(run())


def partitions(database_url: str) -> list[str]:
    query = "SELECT relname FROM pg_class WHERE relname ~ '^outbox_\\d{8}$' ORDER BY 1"
    return [row["relname"] for row in rows(database_url, query)]


def test_partitions_are_made_ahead_and_dropped_once_everything_in_them_is_done(
    database_url: str,
) -> None:
    keep_house(database_url, TODAY)
    assert partitions(database_url) == [f"outbox_{TODAY + timedelta(n):%Y%m%d}" for n in range(3)]
    asyncio.run(commit_events(database_url, 10))
    later = TODAY + timedelta(days=10)
    keep_house(database_url, later)
    assert value(database_url, "SELECT count(*) FROM bus.outbox") == 10
    assert f"outbox_{TODAY:%Y%m%d}" in partitions(database_url)
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("UPDATE bus.outbox SET state = 'done'")
    keep_house(database_url, later)
    assert partitions(database_url) == [f"outbox_{later + timedelta(n):%Y%m%d}" for n in range(3)]
    assert value(database_url, "SELECT count(*) FROM bus.outbox") == 0


def test_a_store_can_write_where_no_partition_exists(database_url: str) -> None:
    assert partitions(database_url) == []
    asyncio.run(commit_events(database_url, 5))
    keep_house(database_url, TODAY)  # today's rows lie in the default partition already
    asyncio.run(commit_events(database_url, 5))
    assert value(database_url, "SELECT count(*) FROM bus.outbox") == 10


async def fill(database_url: str, count: int) -> None:
    async with make_pool(database_url, name="fill", max_size=1) as pool:
        async with pool.connection() as conn, conn.transaction():
            made = [Event.make("test.thing.made", {"n": n}, source="t") for n in range(count)]
            await log.append(conn, made, [event.body_hash() for event in made])


@pytest.mark.parametrize(("cursor", "earliest"), [(None, 101), (40, 41)])
def test_the_log_is_cut_by_age_but_never_past_the_slowest_reader(
    database_url: str, cursor: int | None, earliest: int
) -> None:
    asyncio.run(fill(database_url, 150))
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "UPDATE bus.workflow_events SET received_at = now() - interval '9 days'"
            " WHERE ingress_sequence <= 100"
        )
        if cursor is not None:
            conn.execute(
                "INSERT INTO bus.cursors (consumer, sequence, epoch)"
                " SELECT 'slow', %s, epoch FROM bus.ingress_head",
                [cursor],
            )
    keep_house(database_url, TODAY)  # off by default
    assert value(database_url, "SELECT count(*) FROM bus.workflow_events") == 150
    keep_house(database_url, TODAY, log_keep_days=7)
    assert value(database_url, "SELECT min(ingress_sequence) FROM bus.workflow_events") == earliest
    assert value(database_url, "SELECT earliest FROM bus.ingress_head") == earliest
    assert value(database_url, "SELECT last FROM bus.ingress_head") == 150
