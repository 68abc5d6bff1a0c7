"""Who an event wakes: its takers and nobody else."""

import asyncio

from tristore.errors import PositionAhead
from tristore.events.live.audience import Audience, Reader
from tristore.events.live.frame import Frame
from tristore.events.type_filter import TypeFilter


def frame(sequence: int, type: str) -> Frame:
    return Frame(sequence, type, b"{}")


class Watched(Reader):
    """Remembers the task that sleeps; readers themselves are kept small."""

    __slots__ = ("task",)


async def sleeping(audience: Audience, *patterns: str, position: int = 0) -> Watched:
    reader = Watched(TypeFilter(patterns), position)
    audience.add(reader)
    reader.task = asyncio.create_task(reader.sleep(None))
    await asyncio.sleep(0)
    assert reader.asleep
    return reader


async def test_only_takers_wake_each_just_before_its_first_event() -> None:
    audience = Audience()
    exact = await sleeping(audience, "a.b.c")
    prefix = await sleeping(audience, "a.*")
    all_of_them = await sleeping(audience)
    other = await sleeping(audience, "x.*", "y.*")
    audience.wake([frame(7, "a.b.d"), frame(8, "a.b.c"), frame(9, "q.r.s")])
    assert (exact.position, prefix.position, all_of_them.position) == (7, 6, 6)
    assert [r.asleep for r in (exact, prefix, all_of_them, other)] == [False, False, False, True]
    audience.tell(9)
    assert other.position == 9
    assert await asyncio.gather(*(r.task for r in (exact, prefix, all_of_them, other)))


async def test_a_filter_that_comes_or_goes_is_noticed() -> None:
    audience = Audience()
    first = await sleeping(audience, "a.*")
    audience.wake([frame(1, "b.c.d")])
    assert first.asleep
    second = await sleeping(audience, "b.*")
    audience.wake([frame(2, "b.c.d")])
    assert not second.asleep
    audience.discard(second)
    assert len(audience) == 1
    audience.wake([frame(3, "b.c.d")])
    audience.fail(PositionAhead(1))
    assert await first.task
    assert isinstance(first.failure, PositionAhead)


async def test_a_reader_that_started_ahead_of_the_tail_is_not_taken_back() -> None:
    audience = Audience()
    reader = await sleeping(audience, position=10)
    audience.wake([frame(5, "a.b.c")])
    assert reader.position == 10
    await reader.task


async def test_a_sleep_ends_by_itself() -> None:
    assert not await Reader(TypeFilter([]), 0).sleep(0.001)
