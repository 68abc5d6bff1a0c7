"""A publisher's door to the outbox, by database URL: sent means committed."""

from collections.abc import Sequence

import orjson
import psycopg
from psycopg_pool import PoolTimeout

from tristore.db.pool import Pool, make_pool
from tristore.db.wakeups import OUTBOX
from tristore.errors import Unavailable
from tristore.events import outbox
from tristore.events.envelope import Event


class OutboxDoor:
    def __init__(self, database_url: str) -> None:
        self._database_url = database_url
        self._pool: Pool | None = None

    async def send(self, bodies: Sequence[bytes]) -> None:
        events = [Event.parse(orjson.loads(body)) for body in bodies]
        try:
            pool = await self._opened()
            async with pool.connection() as conn:
                async with conn.transaction():
                    await outbox.offer(conn, events)
                await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            raise Unavailable(f"Postgres is away: {type(error).__name__}") from error

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.close()

    async def _opened(self) -> Pool:
        """Opened at the first event: a publisher starts while Postgres is away, too."""
        if self._pool is None:
            self._pool = make_pool(self._database_url, name="publisher", max_size=1)
            await self._pool.open()
        return self._pool
