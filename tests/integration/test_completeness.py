"""The ledger: closed when everything arrived, and red with the id when something did not."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.support.database import log_count, value
from tests.support.publishing import commit_events, enqueue_events
from tests.support.waiting import until
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.errors import InvalidQuery
from tristore.events.admin import completeness
from tristore.pipeline import log
from tristore.wiring import open_relay


async def ledger(
    settings: Settings,
    since: datetime | None = None,
    to: datetime | None = None,
    datasets: Sequence[str] = (),
) -> dict[str, Any]:
    async with make_pool(str(settings.database_url), name="test") as pool:
        async with pool.connection() as conn:
            found = await completeness.read(conn, since, to, datasets=datasets)
            return found.to_json(1440, None)


async def arrive(settings: Settings, count: int) -> None:
    async def arrived() -> bool:
        return await asyncio.to_thread(log_count, str(settings.database_url)) == count

    await until(arrived)


async def test_all_that_was_committed_or_queued_is_accounted_for(bus: Settings) -> None:
    await commit_events(str(bus.database_url), 40)
    await enqueue_events(str(bus.redis_url), bus.events.queue, 30)
    await arrive(bus, 70)
    found = await ledger(bus)
    assert found["verdict"] == "closed, 0 missing"
    assert found["missingIds"] == []
    assert found["totals"] == {
        "outbox": 40,
        "stored": 40,
        "deadLettered": 0,
        "inFlight": 0,
        "missing": 0,
        "queuePublished": 30,
    }
    assert {row["source"] for row in found["minutes"]} == {"ledger", "queue"}
    for name, total in found["totals"].items():
        assert sum(row[name] for row in found["minutes"]) == total


async def test_a_stored_event_that_vanishes_is_named(bus: Settings) -> None:
    ids = list(await commit_events(str(bus.database_url), 20))
    await arrive(bus, 20)
    with psycopg.connect(str(bus.database_url), autocommit=True) as conn:
        conn.execute("DELETE FROM bus.workflow_events WHERE id = ANY(%s)", [ids[3:5]])
        # The same id under another body is not the same event.
        conn.execute("UPDATE bus.workflow_events SET body_hash = 'x' WHERE id = %s", [ids[9]])
    found = await ledger(bus)
    assert found["verdict"] == "broken, 3 missing"
    assert sorted(found["missingIds"]) == sorted([ids[3], ids[4], ids[9]])
    assert (found["totals"]["outbox"], found["totals"]["stored"]) == (20, 17)


async def test_a_letter_accounts_for_its_event_until_it_is_replayed(bus: Settings) -> None:
    (event_id,) = await commit_events(str(bus.database_url), 1)
    await arrive(bus, 1)
    letter = (
        "INSERT INTO bus.dead_letters (event_id, reason, errors, raw, raw_hash, state, replayed_as)"
        " VALUES (%s, 'expired', '[]', '', '', %s, %s)"
    )
    with psycopg.connect(str(bus.database_url), autocommit=True) as conn:
        conn.execute("DELETE FROM bus.workflow_events")
        conn.execute(letter, [event_id, "replayed", event_id])
        assert (await ledger(bus))["missingIds"] == [event_id]
        conn.execute(letter, [event_id, "open", None])
    assert (await ledger(bus))["totals"]["deadLettered"] == 1


async def test_what_has_not_arrived_yet_is_in_flight(
    settings: Settings, start_part: Callable[..., Awaitable[object]]
) -> None:
    await commit_events(str(settings.database_url), 5)
    waiting = await ledger(settings)
    assert waiting["verdict"] == "open, 0 missing, 5 in flight"
    await start_part(open_relay, settings)

    async def sent() -> bool:
        query = "SELECT count(*) FROM bus.outbox WHERE state = 'enqueued'"
        return bool(await asyncio.to_thread(value, str(settings.database_url), query) == 5)

    await until(sent)
    assert (await ledger(settings))["totals"]["inFlight"] == 5


async def test_a_window_that_is_not_covered_is_cut_with_a_word_or_refused(bus: Settings) -> None:
    await commit_events(str(bus.database_url), 3)
    await arrive(bus, 3)
    now = datetime.now(UTC)
    found = await ledger(bus, now - timedelta(days=400))
    assert found["window"]["from"] == found["window"]["coversFrom"]
    assert "not kept" in found["note"]
    assert found["totals"]["stored"] == 3
    with pytest.raises(InvalidQuery, match="later window"):
        await ledger(bus, now - timedelta(days=400), now - timedelta(days=300))


async def test_minutes_come_in_pages(bus: Settings) -> None:
    await commit_events(str(bus.database_url), 6)
    await arrive(bus, 6)
    with psycopg.connect(str(bus.database_url), autocommit=True) as conn:
        conn.execute("UPDATE bus.outbox SET source = 'source-' || id")
    async with make_pool(str(bus.database_url), name="test") as pool:
        async with pool.connection() as conn_:
            whole = await completeness.read(conn_, None, None)
    first = whole.to_json(4, None)
    rest = whole.to_json(4, first["nextCursor"])
    sources = [row["source"] for row in first["minutes"] + rest["minutes"]]
    assert len(sources) == len(set(sources)) == 6
    assert rest["nextCursor"] is None
    assert first["totals"] == rest["totals"]


async def test_the_datasets_column_follows_the_log_into_each_table(bus: Settings) -> None:
    await commit_events(str(bus.database_url), 20)
    await arrive(bus, 20)
    names = ["events", "filestore_activity"]
    assert (await ledger(bus, datasets=names))["datasets"] == {"state": "off"}

    feed(bus, ["events"], 0, 12)
    feed(bus, ["events"], 0, 12)  # told again by a driver that was killed in between
    open_ = await ledger(bus, datasets=names)
    counts = {"events": 20, "inTable": 12, "waiting": 8, "missing": 0}
    assert open_["datasets"] == {"state": "on", "events": counts}
    assert open_["verdict"] == "open, 0 missing, 0 in flight, 8 not in the datasets yet"
    shares = [row["datasets"]["events"]["inTable"] for row in open_["minutes"]]
    assert sum(shares) == 12

    feed(bus, names, 15, 20)
    broken = await ledger(bus, datasets=names)
    assert broken["verdict"] == "broken, 3 missing"
    lost = (
        "SELECT array_agg(id ORDER BY id) FROM bus.workflow_events WHERE ingress_sequence = ANY(%s)"
    )
    assert broken["missingIds"] == value(str(bus.database_url), lost, [13, 14, 15])
    assert broken["datasets"]["filestore_activity"]["events"] == 0

    feed(bus, ["events"], 12, 15)
    assert (await ledger(bus, datasets=names))["verdict"] == "closed, 0 missing"


def feed(settings: Settings, datasets: list[str], after: int, through: int) -> None:
    url = str(settings.database_url)
    epoch = str(value(url, "SELECT epoch FROM bus.ingress_head"))
    log.record_fed(url, datasets, log.Position(epoch, through), after)
