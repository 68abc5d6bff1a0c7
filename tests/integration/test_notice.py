"""A wake-up that carries events carries just what the log has; in doubt the log is asked."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import orjson
import pytest
from psycopg import AsyncConnection

from tests.support.database import value
from tests.support.waiting import until
from tristore.db.pool import make_pool
from tristore.db.wakeups import LOG, Listener
from tristore.events import log
from tristore.events.envelope import Event
from tristore.events.live.audience import Reader
from tristore.events.live.frame import Frame
from tristore.events.live.notice import frames_after
from tristore.events.live.tail import Tail
from tristore.events.log import Head
from tristore.events.type_filter import TypeFilter

PAYLOADS: list[dict[str, Any]] = [
    {"n": 1.10, "big": 12345678901234567890, "tiny": 1e-7},
    {"text": 'quotes " and \\ and \u2028 and \U0001f600', "none": None, "deep": [[{"a": []}]]},
    {},
]
LISTENING = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tristore-listener'"
    " AND datname = current_database() AND query LIKE 'LISTEN%%' AND state = 'idle'"
)


def events(payloads: Sequence[dict[str, Any]]) -> list[Event]:
    named = {"correlationId": "c", "ttl": 3_600_000, "metadata": {"k": "ä"}}
    plain = {"type": "test.thing.made", "source": "test", "occurredAt": "2026-11-15T10:00:00.5Z"}
    return [
        Event.parse({**plain, "id": f"e{n}", "payload": payload, **(named if n % 2 else {})})
        for n, payload in enumerate(payloads)
    ]


async def store(database_url: str, payloads: Sequence[dict[str, Any]]) -> Head:
    """The head before these events were stored."""
    made = events(payloads)
    async with await AsyncConnection.connect(database_url) as conn:
        before = await log.head(conn)
        await log.append(conn, made, [b"hash"] * len(made))
    return before


async def told(database_url: str, payloads: Sequence[dict[str, Any]]) -> tuple[Head, str]:
    """The same, with the notice that came."""
    async with await AsyncConnection.connect(database_url, autocommit=True) as listening:
        await listening.execute(f"LISTEN {LOG}")
        before = await store(database_url, payloads)
        async for notice in listening.notifies(timeout=60, stop_after=1):
            return before, notice.payload
    raise AssertionError("no notice came")


async def first_page(tail: Tail) -> list[Frame]:
    async with aclosing(tail.pages(Reader(TypeFilter([]), 0))) as pages:
        async for frames, _ in pages:
            return frames
    raise AssertionError("the pages ended")


async def test_what_is_told_is_what_is_stored(database_url: str) -> None:
    before, notice = await told(database_url, PAYLOADS)
    async with (
        make_pool(database_url, name="test") as pool,
        Tail(pool, Listener(database_url, [LOG]), 60) as tail,
    ):
        assert frames_after(before, notice) == await first_page(tail)


async def test_a_reader_gets_what_the_wake_up_carries(database_url: str) -> None:
    async with Listener(database_url, [LOG]) as listener, make_pool(database_url, name="t") as pool:
        async with Tail(pool, listener, 60) as tail:
            await until(lambda: is_listening(database_url))
            async with aclosing(tail.pages(Reader(TypeFilter([]), 0))) as pages:
                page = asyncio.create_task(anext(pages))
                await until(lambda: has_readers(tail))
                await pool.close()  # from here on the log cannot be asked
                await store(database_url, PAYLOADS)
                frames, position = await asyncio.wait_for(page, 60)
    assert ([frame.sequence for frame in frames], position) == ([1, 2, 3], 3)


async def is_listening(database_url: str) -> bool:
    return bool(await asyncio.to_thread(value, database_url, LISTENING))


async def has_readers(tail: Tail) -> bool:
    return tail.readers == 1


@pytest.mark.parametrize(
    "payloads",
    [[{"n": n} for n in range(11)], [{"text": "x" * 8000}], [{"n": n} for n in range(60)]],
    ids=["many", "large", "copied"],
)
async def test_what_does_not_fit_is_left_to_the_log(
    database_url: str, payloads: list[dict[str, Any]]
) -> None:
    assert (await told(database_url, payloads))[1] == ""


async def test_only_what_follows_at_once_is_taken(database_url: str) -> None:
    before, notice = await told(database_url, PAYLOADS)
    assert frames_after(Head(1, 1, before.epoch), notice) is None
    assert frames_after(Head(0, 1, "another"), notice) is None
    rows = orjson.loads(notice)["rows"]
    empty, newer = (
        orjson.dumps({"epoch": before.epoch, "rows": strange}).decode()
        for strange in ([], [[*row, "more"] for row in rows])
    )
    for strange in ("", "{}", "[1]", empty, newer, notice[:-2]):
        assert frames_after(before, strange) is None
