"""Carrying a command out: what happens to its journal entry when the work ends, well or not."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import psycopg
from psycopg_pool import PoolTimeout

from tristore.errors import (
    ChangedOutside,
    ContentConflict,
    ContentGone,
    OutcomeUnknown,
    TristoreError,
    Unavailable,
)
from tristore.filestore.content import Blobs
from tristore.filestore.journal import Intent
from tristore.filestore.model import Outcome
from tristore.filestore.suspicion import suspect
from tristore.filestore.work import Work
from tristore.filestore.workbench import Workbench

T = TypeVar("T")
Carry = Callable[[Workbench, Work], Awaitable[Outcome]]

_log = logging.getLogger(__name__)

# Errors after which nobody can say what is visible: the entry stays open and recovery finds out.
_UNSURE = (Unavailable, OutcomeUnknown)


class Hands:
    """The commands in progress; a caller who goes away does not stop one half-way."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._tasks: set[asyncio.Task[Any]] = set()

    async def hold(self, token: str, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.shield(self.start(token, work))

    def start(self, token: str, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        # Known by its token before the entry exists, so that recovery leaves it alone.
        self._bench.owner.in_hand.add(token)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._done(token, task))
        return task

    async def command(
        self, intent: Intent, carry: Carry, *, background: bool = False, staged: Blobs | None = None
    ) -> Outcome:
        """Both commits of a command; in the background the answer comes after the first.

        `staged` is where content waits under the command's token: it goes if nothing begins.
        """
        token = str(intent.plan["token"])
        if not background:
            return await self.hold(token, self._both(intent, carry, staged))
        told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        task = self.start(token, self._both(intent, carry, staged, told))
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        return told.result() if told.done() else task.result()

    async def _both(
        self,
        intent: Intent,
        carry: Carry,
        staged: Blobs | None,
        told: "asyncio.Future[Outcome] | None" = None,
    ) -> Outcome:
        begun = await self._begin(intent, staged)
        if isinstance(begun, Outcome):
            return begun
        if told is not None and not told.done():
            told.set_result(Outcome(begun.source, begun.journal_id, under_way=True))
        return await carry_out(self._bench, begun, carry)

    async def _begin(self, intent: Intent, staged: Blobs | None) -> Work | Outcome:
        begun = None
        try:
            begun = await self._bench.begin(intent)
            return begun
        finally:
            if staged is not None and not isinstance(begun, Work):
                await tidy(staged, str(intent.plan["token"]))

    def _done(self, token: str, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        self._bench.owner.in_hand.discard(token)
        if not task.cancelled() and (error := task.exception()):
            _log.info("a command ended with %s", type(error).__name__)

    async def finish(self, seconds: float) -> None:
        """Waits for what is in progress; long work stops at its next chunk."""
        self._bench.stopping = True
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)


async def carry_out(bench: Workbench, work: Work, carry: Carry) -> Outcome:
    """Step 3 and the second commit. What is refused ends the entry as failed; what is unsure
    leaves it open."""
    try:
        return await carry(bench, work)
    except _UNSURE as error:
        raise _left_open(work, error) from error
    except TristoreError as error:
        await fail(bench, work, error)
        await _suspect(bench, work, error)
        if isinstance(error, ContentConflict | ContentGone):
            raise ChangedOutside(f"{error}; it is being reconciled, try again") from error
        raise


async def tidy(blobs: Blobs, token: str) -> None:
    """Clears away what a command that has ended left in staging or trash. It is answered all the
    same where that cannot be done now: the sweep comes by."""
    try:
        await blobs.discard(token)
    except TristoreError as error:
        _log.warning("what %s left behind stays for the sweep: %s", token, error)


async def fail(bench: Workbench, work: Work, error: TristoreError) -> None:
    blobs = await bench.blobs(work.target_mount)
    try:
        await bench.fail(work, error)
        await blobs.discard(work.token)
    except (TristoreError, psycopg.Error, PoolTimeout) as second:
        _log.warning("entry %d stays open: %s", work.journal_id, type(second).__name__)


async def _suspect(bench: Workbench, work: Work, error: TristoreError) -> None:
    """After the entry's end: what is claimed nobody doubts."""
    doubtful = list(work.suspects)
    if isinstance(error, ContentConflict | ContentGone):
        doubtful += [(work.mount, work.path), (work.target_mount, work.target_path)]
    for mount, path in {(mount.id, path): (mount, path) for mount, path in doubtful}.values():
        await suspect(bench.pool, await bench.blobs(mount), mount, [path], work.caller)


def _left_open(work: Work, error: TristoreError) -> TristoreError:
    if isinstance(error, OutcomeUnknown):
        return error
    return OutcomeUnknown(
        f"{error}; the command is finished or undone by itself, "
        f"journal entry {work.journal_id} will tell"
    )
