"""The shared tail: memory or table, a reader gets each event once; a changed history ends it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import psycopg
import pytest

from tests.support.publishing import commit_events
from tests.support.waiting import until
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.db.wakeups import LOG, Listener
from tristore.errors import PositionAhead, PositionGone
from tristore.events.live.audience import Reader
from tristore.events.live.tail import Tail
from tristore.events.type_filter import TypeFilter


@pytest.fixture
async def tail(bus: Settings) -> AsyncIterator[Tail]:
    url = str(bus.database_url)
    async with (
        make_pool(url, name="test") as pool,
        Listener(url, [LOG]) as listener,
        Tail(pool, listener, 0.1) as tail,
    ):
        yield tail


async def read(tail: Tail, position: int, upto: int) -> list[int]:
    seen: list[int] = []
    async with aclosing(tail.pages(Reader(TypeFilter([]), position))) as pages:
        async for frames, reached in pages:
            seen += [frame.sequence for frame in frames]
            if reached >= upto:
                return seen
    raise AssertionError("the pages ended")


async def test_early_and_late_readers_see_the_same(tail: Tail, bus: Settings) -> None:
    early = asyncio.create_task(read(tail, 0, 1200))
    await commit_events(str(bus.database_url), 1200, per_transaction=100)
    whole = list(range(1, 1201))
    assert await early == whole
    assert await read(tail, 0, 1200) == whole  # nobody listened: from the table
    assert await read(tail, 1150, 1200) == whole[1150:]


async def test_readers_that_come_and_go_during_a_burst_miss_nothing(
    tail: Tail, bus: Settings
) -> None:
    burst = asyncio.create_task(commit_events(str(bus.database_url), 600))
    readers = []
    while (start := await tail.position(None)) < 600:
        readers.append((start, asyncio.create_task(read(tail, start, 600))))
        await asyncio.sleep(0.01)
    await burst
    assert any(start for start, _ in readers)  # some began in the middle
    for start, task in readers:
        assert await task == list(range(start + 1, 601))


async def test_what_is_dropped_under_a_reader_is_told(tail: Tail, bus: Settings) -> None:
    await commit_events(str(bus.database_url), 50)
    await until(lambda: _reached(tail, 50))
    with psycopg.connect(str(bus.database_url), autocommit=True) as conn:
        conn.execute("DELETE FROM bus.workflow_events WHERE ingress_sequence <= 20")
        conn.execute("UPDATE bus.ingress_head SET earliest = 21")
    with pytest.raises(PositionGone) as gone:
        await read(tail, 10, 50)
    assert gone.value.earliest == 21
    assert await read(tail, 20, 50) == list(range(21, 51))


async def test_a_changed_history_ends_every_reader(tail: Tail, bus: Settings) -> None:
    await commit_events(str(bus.database_url), 5)
    await until(lambda: _reached(tail, 5))
    reading = asyncio.create_task(read(tail, 5, 99))
    await until(lambda: _listened_to(tail))
    with psycopg.connect(str(bus.database_url), autocommit=True) as conn:
        conn.execute("UPDATE bus.ingress_head SET epoch = gen_random_uuid(), last = 3")
    with pytest.raises(PositionAhead):
        await reading
    assert await tail.position(None) == 3


async def _reached(tail: Tail, position: int) -> bool:
    return tail.last >= position


async def _listened_to(tail: Tail) -> bool:
    return tail.readers == 1
