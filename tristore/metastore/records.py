"""Records: read one, and change one so that the change, its audit row and its event are one."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.metastore import audits, idempotency
from tristore.metastore.applying import API, Applying, Settled
from tristore.metastore.changes import Author, Change, Create, Restore, no_record
from tristore.metastore.conditions import Condition
from tristore.metastore.creating import Creating
from tristore.metastore.idempotency import Answer, Attempt
from tristore.metastore.model import Record
from tristore.metastore.settling import Settling
from tristore.metastore.writing import record_of

_sql = load("tristore.metastore", "records.sql")

Shape = Callable[[Settled], Answer]


@dataclass(frozen=True, slots=True)
class Wish:
    """A change of one record, who wants it, and how it is answered."""

    author: Author
    shape: Shape
    attempt: Attempt | None = None


class Records:
    def __init__(self, settling: Settling, applying: Applying) -> None:
        self._settling = settling
        self._applying = applying
        self._creating = Creating(settling, applying)

    async def find(self, namespace: str, key: str, *, deleted: bool = False) -> Record:
        async with self._settling.pool.connection() as conn:
            cursor = await conn.execute(_sql.find, {"namespace": namespace, "key": key})
            row: Any = await cursor.fetchone()
        if row is None or (not deleted and row[-1] is not None):
            raise no_record()
        return record_of(row)

    async def create(self, change: Create, wish: Wish) -> Answer:
        """In one round trip where nothing speaks against it; else as every change."""
        if wish.attempt is None and (made := await self._creating.quickly(change, wish.author)):
            return wish.shape(Settled("created", made))
        return await self.change(change, wish)

    async def change(self, change: Change, wish: Wish) -> Answer:
        async def work(conn: Connection) -> Answer:
            return wish.shape(await self._applying.one(conn, wish.author, change, API))

        return await self._once(wish, work)

    async def restore(
        self, namespace: str, key: str, version: int, condition: Condition, wish: Wish
    ) -> Answer:
        """The content of an earlier version becomes that of a new one."""

        async def work(conn: Connection) -> Answer:
            content = await audits.content(conn, namespace, key, version)
            change = Restore(namespace, key, content, version, condition)
            return wish.shape(await self._applying.one(conn, wish.author, change, API))

        return await self._once(wish, work)

    async def _once(self, wish: Wish, work: Callable[[Connection], Awaitable[Answer]]) -> Answer:
        async def whole(conn: Connection) -> Answer:
            return await idempotency.once(conn, wish.attempt, lambda: work(conn))

        return await self._settling.settle(whole)
