"""One transaction for a change, tried again where another writer was quicker."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg

from tristore.db.pool import Connection, Pool
from tristore.errors import Busy
from tristore.events.poke import Poke

T = TypeVar("T")

_TRIES = 8
_PAUSE_SECONDS = 0.01
_AGAIN = (Busy, psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


def busy() -> Busy:
    return Busy("other writers hold the record or its namespace's rules; try again")


class Settling:
    def __init__(self, pool: Pool, poke: Poke) -> None:
        self.pool = pool
        self._poke = poke

    async def settle(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """The outcome of work that may run several times, of which one is committed."""
        for left in reversed(range(_TRIES)):
            try:
                async with self.pool.connection() as conn, conn.transaction():
                    done = await work(conn)
                self.poke()
                return done
            except psycopg.errors.LockNotAvailable:
                raise busy() from None
            except _AGAIN:
                if not left:
                    raise busy() from None
            # Two who met must not meet again.
            await asyncio.sleep(random.uniform(0.5, 1.5) * _PAUSE_SECONDS * (_TRIES - left))
        raise AssertionError("the last try returns or raises")

    def poke(self) -> None:
        """Tells the relay that there may be events to send."""
        self._poke()
