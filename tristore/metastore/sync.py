"""The filestore sync: reads what the filestore told from the log, and keeps its records true."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import orjson
import psycopg
from psycopg.types.json import set_json_loads
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient
from tristore.db.pool import Connection, Pool
from tristore.db.wakeups import LOG, OUTBOX, Listener
from tristore.errors import (
    EpochChanged,
    PositionAhead,
    PositionGone,
    Transient,
)
from tristore.events import cursors
from tristore.failpoints import failpoint
from tristore.metastore import rebuild, refusals, sync_control
from tristore.metastore.alignment import Alignment, Outcome
from tristore.metastore.node_plan import ACTOR
from tristore.metastore.reading import items
from tristore.metastore.rebuild import Rebuilding
from tristore.metastore.sync_control import CONSUMER, Turn

_log = logging.getLogger(__name__)

PAGE = 500
_LOST = (EpochChanged, PositionGone, PositionAhead)
_AWAY = (psycopg.Error, PoolTimeout, Transient, OSError)
_RETRY_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.0)


class FilestoreSync:
    """Any number may run; one at a time has the turn, and each turn is one transaction."""

    def __init__(
        self,
        pool: Pool,
        listener: Listener,
        alignment: Alignment,
        types: Sequence[str],
        poll_seconds: float,
    ) -> None:
        self._pool = pool
        self._listener = listener
        self._alignment = alignment
        self._types = types
        self._poll_seconds = poll_seconds
        self._rebuilding = Rebuilding(alignment, types)
        self._failures = 0
        self._begun = False

    async def run(self) -> None:
        while True:
            if not await self._round():
                await self._listener.wait(LOG, self._poll_seconds)

    async def _round(self) -> bool:
        """One turn at each kind of work; true if there may be more."""
        try:
            more = await obedient(self._work())
            await obedient(self._well())
            return more
        except _LOST as error:
            await self._surely(self._start_anew, str(error))
        except _AWAY as error:
            await self._failing(error)
        return True

    async def _work(self) -> bool:
        async with self._pool.connection() as conn:
            seen = await sync_control.glance(conn, self._alignment.namespace)
        if seen.lost or not self._begun:
            await self._begin()
            return True
        wanted = (
            (seen.behind, self.follow),
            (seen.due, self._retry),
            (seen.rebuilding, self._again),
        )
        turns = [await self._turn(work) for ask, work in wanted if ask and not seen.paused]
        return any(turns)

    async def _begin(self) -> None:
        """Starts where it stopped; in another namespace than before, from the beginning. What was
        refused gets another try: a hook may have been corrected since."""
        namespace = self._alignment.namespace
        async with self._pool.connection() as conn, conn.transaction():
            await cursors.start(conn, CONSUMER, self._types)
            if await sync_control.settle_in(conn, namespace) is not None:
                await rebuild.request(conn, namespace, ACTOR)
            await refusals.ask_again(conn, namespace)
        self._begun = True

    async def _turn(self, work: Callable[[Connection, Turn], Awaitable[Outcome | None]]) -> bool:
        async with self._pool.connection() as conn:
            async with conn.transaction():
                turn = await sync_control.take_turn(conn)
                if turn is None or turn.paused:
                    return False
                set_json_loads(orjson.loads, conn)
                outcome = await work(conn, turn)
                failpoint("sync.before_commit")
            failpoint("sync.after_commit")
            if outcome and outcome.written:
                await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
        return outcome is not None

    async def follow(self, conn: Connection, turn: Turn) -> Outcome | None:
        """The next page of the log: effect and cursor, or neither."""
        page = await cursors.read(conn, CONSUMER, turn.cursor, PAGE)
        if page.through == turn.sequence:
            return None
        if not page.events:
            # Losing the step over what others told costs a reading, not an effect.
            await conn.execute("SET LOCAL synchronous_commit = off")
        outcome = await self._alignment.apply(conn, items(page.events))
        failpoint("sync.after_effect")
        await cursors.advance(conn, CONSUMER, page.through)
        return outcome

    async def _retry(self, conn: Connection, turn: Turn) -> Outcome | None:
        """What was refused by rules that have changed since, or was asked for again."""
        version = await self._alignment.rules_version(conn)
        due = await refusals.due(conn, self._alignment.namespace, version, PAGE)
        return await self._alignment.apply(conn, due) if due else None

    async def _again(self, conn: Connection, turn: Turn) -> Outcome | None:
        return await self._rebuilding.step(conn, turn)

    async def _start_anew(self, reason: str) -> None:
        """The log is another one than the cursor knows: read it from its beginning, and look for
        records that tell of what it no longer holds."""
        _log.warning("the sync starts anew", extra={"reason": reason})
        async with self._pool.connection() as conn, conn.transaction():
            await cursors.forget(conn, CONSUMER)
            await cursors.start(conn, CONSUMER, self._types)
            await rebuild.request(conn, self._alignment.namespace, ACTOR)

    async def _surely(self, work: Callable[[str], Awaitable[None]], reason: str) -> None:
        try:
            await obedient(work(reason))
        except _AWAY as error:
            await self._failing(error)

    async def _failing(self, error: Exception) -> None:
        """Tells operators, if that is possible, and waits."""
        text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
        if not self._failures:
            _log.warning("the sync does not get on", extra={"error": text})
        pause = _RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS) - 1)]
        self._failures += 1
        await self._note(text)
        await asyncio.sleep(pause)

    async def _well(self) -> None:
        if self._failures:
            _log.warning("the sync gets on again", extra={"failures": self._failures})
            self._failures = 0
            await self._note(None)

    async def _note(self, error: str | None) -> None:
        try:
            async with self._pool.connection() as conn:
                await obedient(cursors.note(conn, CONSUMER, error))
        except (psycopg.Error, PoolTimeout):
            pass  # it cannot be told where it would be read
