"""Calls that come close together, carried out as one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import psycopg

A = TypeVar("A")
B = TypeVar("B")

_MOST_AT_ONCE = 64
# Two, so that one is carried out while the other's commit waits for the disk.
_ROUNDS = 2
# Whoever has waited this long goes past the rounds under way: they are stuck behind a slow disk, or
# somebody's lock.
_PATIENCE_SECONDS = 0.003
_MOST_ROUNDS = 4


class Gathering(Generic[A, B]):
    """Calls of one turn of the loop are one round: on a server at rest nobody waits for others, on
    a busy one a turn brings many. `together` answers all of a round or raises having done none of
    it, so that after an error of the database each is tried by itself and fails for its own
    reasons.
    """

    def __init__(self, together: Callable[[Sequence[A]], Awaitable[Sequence[B]]]) -> None:
        self._together = together
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._rounds: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Handle | None = None
        self._timer: asyncio.Handle | None = None

    async def call(self, given: A) -> B:
        loop = asyncio.get_running_loop()
        told: asyncio.Future[B] = loop.create_future()
        self._waiting.append((given, told))
        if self._turn is None:
            self._turn = loop.call_soon(self._end_turn)
        return await told

    def _end_turn(self) -> None:
        self._turn = None
        if len(self._rounds) < _ROUNDS:
            self._start()
        elif self._timer is None:
            self._watch()

    def _start(self) -> None:
        taken, self._waiting = self._waiting[:_MOST_AT_ONCE], self._waiting[_MOST_AT_ONCE:]
        if not taken:
            return
        task = asyncio.create_task(self._round(taken))
        self._rounds.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._rounds.discard(task)
        if len(self._rounds) < _ROUNDS:
            self._start()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_PATIENCE_SECONDS, self._look)

    def _look(self) -> None:
        self._timer = None
        if len(self._rounds) < _MOST_ROUNDS:
            self._start()
        if self._waiting:
            self._watch()

    async def _round(self, taken: list[tuple[A, "asyncio.Future[B]"]]) -> None:
        try:
            answers = await self._together([given for given, _ in taken])
        except psycopg.Error as error:
            # Without a code the server said nothing: the round may have happened.
            if len(taken) == 1 or error.sqlstate is None:
                _refuse(taken, error)
                return
            for one in taken:
                await self._round([one])
        except BaseException as error:
            _refuse(taken, error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, told), answer in zip(taken, answers, strict=True):
                if not told.done():
                    told.set_result(answer)


def _refuse(taken: "list[tuple[A, asyncio.Future[B]]]", error: BaseException) -> None:
    for _, told in taken:
        if told.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            told.cancel()
        else:
            told.set_exception(error)
