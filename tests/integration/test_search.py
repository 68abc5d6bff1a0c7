"""Finding events: every combination of filters, by every plan, page by page, finds the same."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.support.history import fill, made, store
from tristore.db.pool import Connection, make_pool
from tristore.errors import CursorStale, InvalidQuery
from tristore.events.admin import search, search_plan
from tristore.events.admin.jsonpath import JsonPath
from tristore.events.admin.listing import Pattern
from tristore.events.admin.search_plan import Filter
from tristore.events.envelope import Event

NOW = datetime.now(UTC)
TYPES = ["a.b.c", "a.b.d", "a.bb.c", "a.c.c", "b.b.c"]
COUNT = 200
HOUR = timedelta(hours=1)
OFF = [0, -1 / 60, 1 / 60, -30, 5]
# Half a minute beside an event, so that one a minute late or early lies across the bound.
BOUNDS = [-40, -31, -20, -15, -10, -5, -3, -2, -1, 4]
SOURCES = ["x.api", "x.job", "xx", "y"]


def received(number: int) -> datetime:
    return NOW + (number - COUNT) * HOUR / 4


async def store_over_days(database_url: str, events: list[Event]) -> None:
    await store(database_url, events)
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "UPDATE bus.workflow_events SET received_at = %s + (ingress_sequence - %s) * %s",
            [NOW, COUNT, HOUR / 4],
        )


def some_events(count: int, seed: int) -> list[Event]:
    chance = random.Random(seed)
    return [
        made(
            number,
            type=chance.choice(TYPES),
            source=chance.choice(SOURCES),
            correlationId=chance.choice([None, "run-1", "run-2"]),
            # Some arrive as they happen, the others a minute or hours late or early.
            occurredAt=(received(number) + chance.choice(OFF) * HOUR).isoformat(),
            payload={"n": number, "deep": [{"k": chance.choice(["v", 1, None, True])}]},
        )
        for number in range(1, count + 1)
    ]


def some_filter(chance: random.Random) -> Filter:
    hours = sorted(h + chance.choice([-1, 1]) / 120 for h in chance.sample(BOUNDS, 2))
    by_time = chance.random() < 0.5
    return Filter(
        type=Pattern.parse(chance.choice([None, "*", "a.b.c", "a.b.*", "a.*", "none.*", "z.z.z"])),
        source=Pattern.parse(chance.choice([None, "x.api", "x.*", "y", "none"])),
        correlation_id=chance.choice([None, None, "run-1", "none"]),
        since=NOW + hours[0] * HOUR if by_time and chance.random() < 0.8 else None,
        until=NOW + hours[1] * HOUR if by_time and chance.random() < 0.8 else None,
        json_path=JsonPath.parse(chance.choice(PATHS)) if chance.random() < 0.3 else None,
        first=chance.choice([None, 50]),
        last=chance.choice([None, 150]),
        ascending=chance.random() < 0.5,
    )


PATHS = ['$.deep[0].k == "v"', "$.n >= 100", "$.deep[0]['k'] != null", "$.none", "$.deep[0].k < 2"]
HOLDS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "==": lambda payload: payload["deep"][0]["k"] == "v",
    ">=": lambda payload: payload["n"] >= 100,
    "!=": lambda payload: payload["deep"][0]["k"] is not None,
    "exists": lambda payload: False,
    "<": lambda payload: payload["deep"][0]["k"] == 1 and payload["deep"][0]["k"] is not True,
}


def expected(events: list[Event], wanted: Filter) -> list[str]:
    found = [
        event.id
        for sequence, event in enumerate(events, 1)
        if _fits(wanted.type, event.type)
        and _fits(wanted.source, event.source)
        and wanted.correlation_id in (None, event.correlation_id)
        and (wanted.since is None or event.occurred_at >= wanted.since)
        and (wanted.until is None or event.occurred_at < wanted.until)
        and (wanted.json_path is None or HOLDS[wanted.json_path.operator](event.payload))
        and (wanted.first or 0) <= sequence <= (wanted.last or 10**9)
    ]
    return found if wanted.ascending else found[::-1]


def _fits(pattern: Pattern | None, text: str) -> bool:
    if pattern is None:
        return True
    return text.startswith(pattern.text) if pattern.is_prefix else text == pattern.text


async def all_pages(conn: Connection, wanted: Filter, limit: int) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    for _ in range(1000):
        page = await search.find(conn, wanted, limit, cursor)
        assert len(page.rows) <= limit
        found += [row.id for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize(
    ("short_range", "most_streams", "seconds"),
    [(2000, 200, 0.5), (10, 200, 0.5), (10, 2, 0.5), (10, 2, -1.0)],
    ids=["usual", "long ranges", "many types", "no time to scan"],
)
async def test_every_plan_finds_what_a_plain_loop_finds(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    short_range: int,
    most_streams: int,
    seconds: float,
) -> None:
    monkeypatch.setattr(search_plan, "_SHORT_RANGE", short_range)
    monkeypatch.setattr(search_plan, "_MOST_STREAMS", most_streams)
    monkeypatch.setattr(search, "SCAN_SECONDS", seconds)
    events = some_events(COUNT, seed=7)
    await store_over_days(database_url, events)
    chance = random.Random(11)
    hits = 0
    async with make_pool(database_url, name="test") as pool, pool.connection() as conn:
        for _ in range(120):
            wanted = some_filter(chance)
            found = await all_pages(conn, wanted, limit=chance.choice([1, 7, 1000]))
            assert found == expected(events, wanted), wanted
            hits += bool(found)
    assert hits > 30


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("off_hours", [1 / 60, 5.0])
async def test_events_early_or_late_across_the_bounds_of_a_range_are_found(
    database_url: str, monkeypatch: pytest.MonkeyPatch, off_hours: float, ascending: bool
) -> None:
    monkeypatch.setattr(search_plan, "_SHORT_RANGE", 0)
    off = off_hours * HOUR
    # Received just before the range and happened in it, and the other way round.
    times = {50: received(50) + off, 150: received(150) - off}
    events = [
        made(number, occurredAt=times.get(number, received(number)).isoformat())
        for number in range(1, COUNT + 1)
    ]
    await store_over_days(database_url, events)
    since, until = received(50) + off / 2, received(150) - off / 2
    wanted = Filter(since=since, until=until, ascending=ascending)
    async with make_pool(database_url, name="test") as pool, pool.connection() as conn:
        found = await all_pages(conn, wanted, limit=7)
    assert found == expected(events, wanted)
    assert {"h-50", "h-150"} <= set(found)


async def test_a_scan_that_runs_out_of_time_says_so_and_goes_on(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SCAN_SECONDS", -1.0)
    fill(database_url, 5000)
    wanted = Filter(json_path=JsonPath.parse("$.n == 17"))
    async with make_pool(database_url, name="test") as pool, pool.connection() as conn:
        page = await search.find(conn, wanted, 100, None)
        assert (page.rows, page.scanned) == ([], 101)
        assert page.next_cursor is not None
        assert await all_pages(conn, wanted, 100) == ["f-17"]


async def test_no_plan_reads_more_of_the_log_than_it_shows(database_url: str) -> None:
    """Buffers touched, not time: what does not match must not be read either."""
    fill(database_url, 60_000, types=3, sources=3)
    # Statistics that promise matches everywhere are the ones that mislead a planner.
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("VACUUM ANALYZE bus.workflow_events")
    narrow = {"since": datetime.now(UTC) - timedelta(seconds=9), "until": datetime.now(UTC)}
    async with make_pool(database_url, name="test", max_size=1) as pool:
        for given in [
            {"type": "fill.kind0.made", "source": "fill0"},
            {"type": "fill.kind0.made", "source": "fill1"},  # both frequent, never together
            {"type": "fill.kind0.made", "source": "nobody"},
            {"type": "fill.*", "source": "fill1"},
            {"type": "nothing.*", "source": "fill.*"},
            {"type": "fill.kind1.made"},
            {"source": "nobody"},
            {},
            {**narrow, "type": "fill.kind2.made", "source": "fill2"},
        ]:
            patterns = {k: Pattern.parse(v) if isinstance(v, str) else v for k, v in given.items()}
            async with pool.connection() as conn:
                before = await _buffers(conn)
                await search.find(conn, Filter(**patterns), 100, None)
                touched = await _buffers(conn) - before
            assert touched < 200, (given, touched)


async def _buffers(conn: Connection) -> int:
    await conn.execute("SELECT pg_stat_force_next_flush()")
    cursor = await conn.execute(
        "SELECT sum(idx_blks_read + idx_blks_hit + heap_blks_read + heap_blks_hit)::bigint "
        "FROM pg_statio_all_tables WHERE relname = 'workflow_events'"
    )
    row: Any = await cursor.fetchone()
    return int(row[0])


async def test_a_cursor_of_another_list_history_or_maker_is_refused(database_url: str) -> None:
    await store(database_url, some_events(20, seed=1))
    async with make_pool(database_url, name="test") as pool, pool.connection() as conn:
        cursor = (await search.find(conn, Filter(), 5, None)).next_cursor
        assert cursor is not None
        for bad in ("", "!", "AAAA", "W10", "bnVsbA", cursor[:-4]):
            with pytest.raises(InvalidQuery):
                await search.find(conn, Filter(), 5, bad)
        with pytest.raises(InvalidQuery, match="other filters"):
            await search.find(conn, Filter(type=Pattern.parse("a.*")), 5, cursor)
        await conn.execute("UPDATE bus.ingress_head SET epoch = gen_random_uuid()")
        with pytest.raises(CursorStale):
            await search.find(conn, Filter(), 5, cursor)
