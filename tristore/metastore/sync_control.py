"""The sync's switch and its turns: kept in the database, so that they hold for every process."""

from dataclasses import dataclass

from psycopg.rows import class_row, tuple_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events.cursors import Cursor

_sql = load("tristore.metastore", "sync_control.sql")

CONSUMER = "tristore.metastore.sync"
_GIVEN = {"consumer": CONSUMER}


@dataclass(frozen=True, slots=True)
class Glance:
    """What there may be to do; `lost` if the sync has no cursor, or has it no more."""

    lost: bool
    paused: bool
    behind: bool | None
    rebuilding: bool
    due: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """Until the transaction ends nobody else applies anything, and the cursor stands still."""

    sequence: int
    epoch: str
    types: list[str]
    paused: bool

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.sequence, self.epoch, self.types)


async def glance(conn: Connection, namespace: str) -> Glance:
    cursor = conn.cursor(row_factory=class_row(Glance))
    given = {"consumer": CONSUMER, "namespace": namespace}
    found = await (await cursor.execute(_sql.glance, given)).fetchone()
    assert found is not None
    return found


async def switch(conn: Connection, *, paused: bool, by: str) -> None:
    """Once it is paused, nothing more is written by any sync process."""
    async with conn.transaction():
        await conn.execute("SET LOCAL lock_timeout = '3s'")
        await conn.execute(_sql.switch, {"paused": paused, "by": by})
        await conn.execute(_sql.in_hand, _GIVEN)


async def take_turn(conn: Connection) -> Turn | None:
    """None until the sync has a cursor."""
    cursor = conn.cursor(row_factory=class_row(Turn))
    return await (await cursor.execute(_sql.take_turn, _GIVEN)).fetchone()


async def settle_in(conn: Connection, namespace: str) -> str | None:
    """The namespace the sync has left, if it wrote in another one before."""
    cursor = conn.cursor(row_factory=tuple_row)
    row = await (await cursor.execute(_sql.settle_in, {"namespace": namespace})).fetchone()
    return row[0] if row else None
