"""Calls that come close together are one round, and each still has its own outcome."""

import asyncio
from collections.abc import Sequence

import psycopg
import pytest

from tristore.filestore.gathering import Gathering


class Desk:
    """Doubles numbers, a round at a time, when `go` is set; 13 breaks the round it is in."""

    def __init__(self, error: type[psycopg.Error] = psycopg.errors.CheckViolation) -> None:
        self.go = asyncio.Event()
        self.rounds: list[list[int]] = []
        self.stuck: set[int] = set()
        self._error = error

    async def together(self, given: Sequence[int]) -> list[int]:
        self.rounds.append(list(given))
        if self.stuck.isdisjoint(given):
            await self.go.wait()
        else:
            await asyncio.Event().wait()
        if 13 in given:
            raise self._error("13")
        return [2 * number for number in given]


async def test_what_comes_in_one_turn_is_one_round() -> None:
    desk = Desk()
    desk.go.set()
    gathering = Gathering(desk.together)
    calls = [gathering.call(number) for number in range(5)]
    assert await asyncio.gather(*calls) == [0, 2, 4, 6, 8]
    assert desk.rounds == [[0, 1, 2, 3, 4]]


async def test_behind_rounds_that_take_long_calls_gather() -> None:
    desk = Desk()
    gathering = Gathering(desk.together)
    calls = []
    for number in range(20, 60):
        calls.append(asyncio.create_task(gathering.call(number)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    desk.go.set()
    assert await asyncio.gather(*calls) == [2 * number for number in range(20, 60)]
    assert [number for one in desk.rounds for number in one] == list(range(20, 60))
    assert desk.rounds[:2] == [[20], [21]] and len(desk.rounds) < 40


async def test_one_that_breaks_its_round_fails_alone() -> None:
    desk = Desk()
    gathering = Gathering(desk.together)
    calls = [asyncio.create_task(gathering.call(number)) for number in (1, 2, 13, 3)]
    desk.go.set()
    one, two, broken, three = await asyncio.gather(*calls, return_exceptions=True)
    assert [one, two, three] == [2, 4, 6]
    assert isinstance(broken, psycopg.errors.CheckViolation)


async def test_what_may_have_happened_is_not_done_again() -> None:
    """A connection that broke says nothing of the round it was asked for."""
    desk = Desk(psycopg.OperationalError)
    gathering = Gathering(desk.together)
    calls = [asyncio.create_task(gathering.call(number)) for number in (1, 2, 13)]
    desk.go.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(one, psycopg.OperationalError) for one in ended)
    assert desk.rounds == [[1, 2, 13]]


async def test_a_round_that_is_stuck_holds_nobody_up() -> None:
    desk = Desk()
    desk.go.set()
    desk.stuck = {1, 2}
    gathering = Gathering(desk.together)
    stuck = []
    async with asyncio.timeout(60):
        for number in (1, 2):
            stuck.append(asyncio.create_task(gathering.call(number)))
            while [number] not in desk.rounds:
                await asyncio.sleep(0)
        assert await gathering.call(3) == 6
        assert await gathering.call(4) == 8
    assert not any(one.done() for one in stuck)
    for one in stuck:
        one.cancel()


async def test_a_caller_who_leaves_takes_nobody_along() -> None:
    desk = Desk()
    gathering = Gathering(desk.together)
    calls = [asyncio.create_task(gathering.call(number)) for number in range(4)]
    await asyncio.sleep(0)
    calls[2].cancel()
    desk.go.set()
    with pytest.raises(asyncio.CancelledError):
        await calls[2]
    assert [await calls[number] for number in (0, 1, 3)] == [0, 2, 6]
