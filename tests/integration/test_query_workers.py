"""The pool of query workers: what a query does to one of them is over with the next query."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support import log_tables
from tests.support.waiting import until
from tristore.errors import InvalidRequest, SqlForbidden, TookTooLong, Unavailable
from tristore.problem import STATUS
from tristore.timestore import tail
from tristore.timestore.child import Surroundings
from tristore.timestore.logrows import LogRows
from tristore.timestore.place import Place
from tristore.timestore.requests import Limits, Query, Source
from tristore.timestore.workers import Workers

ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(100000000) b"
COLUMNS = {"id": "string", "occurred_at": "timestamp", "ingress_sequence": "long"}
EVENTS = Source("events", "events", "log", "occurred_at", columns=COLUMNS)


@pytest.fixture
async def workers(database_url: str, tmp_path: Path) -> AsyncIterator[Workers]:
    async with pool(database_url, tmp_path, most=2) as workers:
        yield workers


@pytest.fixture
async def alone(database_url: str, tmp_path: Path) -> AsyncIterator[Workers]:
    async with pool(database_url, tmp_path, most=1) as workers:
        yield workers


@asynccontextmanager
async def pool(database_url: str, folder: Path, *, most: int) -> AsyncIterator[Workers]:
    given = Surroundings(Place(str(folder)), database_url, 2, address_space_mb=3072)
    workers = Workers(given, most=most, wait_seconds=60)
    yield workers
    await workers.aclose()


def one() -> Query:
    return Query([], "SELECT 1", limits=Limits(seconds=60))


async def asked(workers: Workers) -> list[int]:
    """Answers with rows, and tells which processes are waiting then."""
    answer = await workers.run(one())
    assert b'"rows":[[1]]' in answer.body
    return [worker.process.pid for worker in workers._idle]


async def test_an_endless_query_is_stopped_and_others_are_answered(workers: Workers) -> None:
    endless = asyncio.create_task(workers.run(Query([], ENDLESS, limits=Limits(seconds=3))))
    await asked(workers)
    with pytest.raises(TookTooLong, match="longer than 3 s"):
        await endless
    assert STATUS[TookTooLong][0] == 408
    await asked(workers)


async def test_a_query_nobody_waits_for_ends(alone: Workers) -> None:
    (pid,) = await asked(alone)
    endless = asyncio.create_task(alone.run(Query([], ENDLESS, limits=Limits(seconds=600))))
    await until(lambda: _taken(alone), 60)
    endless.cancel()
    await asyncio.gather(endless, return_exceptions=True)
    assert not Path(f"/proc/{pid}").exists()
    await asked(alone)


async def _taken(workers: Workers) -> bool:
    return not workers._idle


async def test_a_killed_worker_is_replaced(alone: Workers) -> None:
    (pid,) = await asked(alone)
    endless = asyncio.create_task(alone.run(Query([], ENDLESS, limits=Limits(seconds=600))))
    await until(lambda: _taken(alone), 60)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(InvalidRequest, match="narrow it"):
        await endless
    (idle, *_) = await asked(alone)
    os.kill(idle, signal.SIGKILL)
    await until(lambda: _ended(alone, idle), 60)
    await asked(alone)


async def test_a_worker_that_ran_out_of_memory_is_replaced(alone: Workers) -> None:
    """What its allocators keep would be lacking to the next query."""
    before = await asked(alone)
    hungry = "SELECT string_agg(repeat('x', 1000000), '') FROM range(2000)"
    with pytest.raises(InvalidRequest, match="memory; narrow it"):
        await alone.run(Query([], hungry, limits=Limits(seconds=60)))
    assert not {*before} & {*await asked(alone)}


async def _ended(workers: Workers, pid: int) -> bool:
    return all(w.process.returncode is not None for w in workers._idle if w.process.pid == pid)


async def test_a_worker_has_no_secrets_in_its_environment_and_may_write_no_file(
    alone: Workers,
) -> None:
    (pid,) = await asked(alone)
    assert Path(f"/proc/{pid}/environ").read_bytes() == b""
    limits = Path(f"/proc/{pid}/limits").read_text()
    (line,) = [line for line in limits.splitlines() if line.startswith("Max file size")]
    assert line.split()[3:5] == ["0", "0"]


async def test_what_the_platform_asks_can_open_the_tables_alone(
    alone: Workers, tmp_path: Path
) -> None:
    """Its statements share an instance: nothing of one is left to the next, not even its end."""
    outside = tmp_path.parent / f"{tmp_path.name}-outside.csv"
    for place in (outside, tmp_path / "inside.csv"):
        place.write_text("n\n7\n")
    inside = Query([], f"SELECT n FROM read_csv('{tmp_path}/inside.csv')")
    assert b'"rows":[[7]]' in (await alone.run(inside)).body
    for refused in (outside, "/etc/passwd", tmp_path / ".." / outside.name):
        with pytest.raises(SqlForbidden):
            await alone.run(Query([], f"SELECT * FROM read_csv('{refused}')"))
    await alone.run(Query([EVENTS], "SELECT count(*) FROM events"))
    with pytest.raises(InvalidRequest, match="events"):
        await alone.run(Query([], "SELECT count(*) FROM events"))
    assert b'"rows":[[7]]' in (await alone.run(inside)).body


async def test_workers_take_turns(workers: Workers) -> None:
    """One that has just answered makes itself ready; the next query need not wait for that."""
    await until(lambda: _all_there(workers), 60)
    first, second = await asked(workers)
    assert await asked(workers) == [second, first]


async def _all_there(workers: Workers) -> bool:
    return len(await asked(workers)) == 2


async def test_a_database_that_is_away_is_told(tmp_path: Path) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    workers = Workers(Surroundings(Place(str(tmp_path)), nowhere, 2, 3072))
    try:
        with pytest.raises(Unavailable, match="database is away"):
            await workers.run(Query([EVENTS], "SELECT * FROM events"))
    finally:
        await workers.aclose()


@pytest.fixture
def rows(database_url: str) -> Iterator[LogRows]:
    log_tables.publish(database_url, 30)
    with LogRows(database_url) as rows:
        yield rows


@pytest.mark.parametrize("most", [1, 6, 7, 8, 9, 10, 11, 25])
def test_a_long_tail_is_cut_between_events(
    rows: LogRows, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """An import is four rows, so a limit in rows may fall into the middle of one."""
    every = tail.LogTail(rows).read(tail.ACTIVITY, 0, 30).rows.to_pylist()
    monkeypatch.setattr(tail, "MOST_ROWS", most)
    log = tail.LogTail(rows)
    found = log.read(tail.ACTIVITY, 0, log.head().last)
    assert found.cut
    assert found.rows.num_rows <= most
    assert found.rows.to_pylist() == [r for r in every if r["sequence"] <= found.through]
    assert log.left_ms(found.through) >= 0


def test_what_was_read_before_is_not_read_again(rows: LogRows) -> None:
    log = tail.LogTail(rows)
    log.read(tail.EVENTS, 0, 10)
    for after, through in ((0, 20), (5, 20), (5, 30), (25, 30), (3, 30)):
        found = log.read(tail.EVENTS, after, through)
        sequences = found.rows["ingress_sequence"].to_pylist()
        assert sequences == list(range(after + 1, through + 1))
        assert not found.cut
