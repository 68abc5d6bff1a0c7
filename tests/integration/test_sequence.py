"""The order of the log: no gaps, and a reader at the tail never skips; a plain serial would."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

import psycopg

from tests.support.database import rows, value
from tristore.db.pool import Connection, Pool, make_pool
from tristore.events import log
from tristore.events.envelope import Event

WRITERS, EACH, ROLLBACKS = 8, 120, 0.1
Write = Callable[[Connection, int], Awaitable[None]]
Read = Callable[[Connection, int], Awaitable[list[int]]]


class Rollback(Exception):
    pass


async def append(conn: Connection, number: int) -> None:
    """Now and then with an id that another writer uses too."""
    name = f"e-{number if number % 10 else 0}"
    event = Event.make("test.thing.made", {"n": number % 10 and number}, source="t", id=name)
    await log.append(conn, [event], [event.body_hash()])


async def read_log(conn: Connection, after: int) -> list[int]:
    return [row.ingress_sequence for row in await log.read(conn, after, 500)]


async def insert_serial(conn: Connection, number: int) -> None:
    await conn.execute("INSERT INTO public.serial_log (n) VALUES (%s)", [number])


async def read_serial(conn: Connection, after: int) -> list[int]:
    query = "SELECT id FROM public.serial_log WHERE id > %s ORDER BY id LIMIT 500"
    return [int(str(row[0])) for row in await (await conn.execute(query, [after])).fetchall()]


async def write(pool: Pool, writer: int, write_one: Write) -> None:
    dice = random.Random(writer)
    for step in range(EACH):
        with suppress(Rollback):
            async with pool.connection() as conn, conn.transaction():
                await write_one(conn, writer * EACH + step)
                await conn.execute("SELECT pg_sleep(%s)", [dice.random() * 0.004])
                if dice.random() < ROLLBACKS:
                    raise Rollback


async def tail(pool: Pool, read: Read, writing: asyncio.Event) -> list[int]:
    """Follows by position alone, as every reader of the log does."""
    seen: list[int] = []
    while True:
        finished = not writing.is_set()
        async with pool.connection() as conn:
            found = await read(conn, seen[-1] if seen else 0)
        seen += found
        if finished and not found:
            return seen


async def race(database_url: str, write_one: Write, read: Read) -> list[int]:
    async with make_pool(database_url, name="race", max_size=WRITERS + 2) as pool:
        writing = asyncio.Event()
        writing.set()
        reader = asyncio.create_task(tail(pool, read, writing))
        await asyncio.gather(*(write(pool, writer, write_one) for writer in range(WRITERS)))
        writing.clear()
        return await reader


async def test_the_log_has_no_gap_and_its_tail_skips_nothing(database_url: str) -> None:
    seen = await race(database_url, append, read_log)
    stored = [
        row["ingress_sequence"]
        for row in rows(database_url, "SELECT ingress_sequence FROM bus.workflow_events ORDER BY 1")
    ]
    assert len(stored) > WRITERS * EACH * 0.7
    assert stored == list(range(1, len(stored) + 1))
    assert seen == stored
    assert value(database_url, "SELECT last FROM bus.ingress_head") == stored[-1]


async def test_the_same_race_over_a_plain_serial_loses_events(database_url: str) -> None:
    """Shows that the race above is real: numbers given before commit make readers skip."""
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("CREATE TABLE public.serial_log (id bigserial PRIMARY KEY, n int)")
    seen = await race(database_url, insert_serial, read_serial)
    stored = value(database_url, "SELECT count(*) FROM public.serial_log")
    assert stored > WRITERS * EACH * 0.7
    assert len(seen) < stored
