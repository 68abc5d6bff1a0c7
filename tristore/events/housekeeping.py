"""Housekeeping: makes and drops the outbox's daily partitions, cuts the log if told to.

Runs beside the relay. Nothing that still waits is ever removed: a partition goes only when all
its rows are done, the log only as far as its slowest durable reader has read.
"""

import asyncio
import logging
from datetime import UTC, date, datetime, timedelta

import psycopg
from psycopg import sql
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient
from tristore.config import EventsSettings
from tristore.db.pool import Connection, Pool
from tristore.db.queries import load

_sql = load("tristore.events", "housekeeping.sql")
_log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
DAYS_AHEAD = 3
CUT_ROWS = 5000


class Housekeeping:
    def __init__(self, pool: Pool, settings: EventsSettings) -> None:
        self._pool = pool
        self._settings = settings

    async def run(self) -> None:
        while True:
            try:
                await obedient(self.keep_house(datetime.now(UTC).date()))
            except (psycopg.Error, PoolTimeout) as error:
                _log.warning("housekeeping put off", extra={"error": str(error)[:200]})
            await asyncio.sleep(EVERY_SECONDS)

    async def keep_house(self, today: date) -> None:
        async with self._pool.connection() as conn:
            if not await _value(conn, _sql.take_turn):
                return
            try:
                await make_partitions(conn, today)
                await drop_partitions(conn, today - timedelta(days=self._settings.outbox_keep_days))
                await conn.execute(_sql.forget)
                if self._settings.log_keep_days is not None:
                    await cut_log(conn, self._settings.log_keep_days)
            finally:
                await conn.execute(_sql.end_turn)


async def make_partitions(conn: Connection, today: date) -> None:
    """Ahead of time, since making one locks the outbox for a moment."""
    there = set(await _partitions(conn))
    for ahead in range(DAYS_AHEAD):
        day = today + timedelta(days=ahead)
        if (name := _name(day)) not in there:
            await _make_partition(conn, name, day)


async def _make_partition(conn: Connection, name: str, day: date) -> None:
    statement = sql.SQL(
        "CREATE TABLE bus.{} PARTITION OF bus.outbox FOR VALUES FROM ({}) TO ({})"
    ).format(sql.Identifier(name), sql.Literal(day), sql.Literal(day + timedelta(days=1)))
    try:
        await _briefly(conn, statement)
    except psycopg.errors.CheckViolation:
        _log.info("rows of that day are in the default partition", extra={"day": str(day)})


async def drop_partitions(conn: Connection, before: date) -> None:
    for name in await _partitions(conn):
        if name >= _name(before):
            break
        table = sql.Identifier(name)
        waiting = sql.SQL("SELECT EXISTS (SELECT FROM bus.{} WHERE state <> 'done')").format(table)
        if not await _value(conn, waiting):
            await _briefly(conn, sql.SQL("DROP TABLE bus.{}").format(table))
    await conn.execute(_sql.clear_default, {"day": before})


async def cut_log(conn: Connection, keep_days: float) -> None:
    before = await _value(conn, _sql.oldest_to_keep, {"seconds": keep_days * 86400})
    while before:
        async with conn.transaction():
            row = await (
                await conn.execute(_sql.cut_log, {"before": before, "limit": CUT_ROWS})
            ).fetchone()
            assert row is not None
            removed, earliest = row
            if earliest is not None:
                await conn.execute(_sql.move_earliest, {"earliest": earliest})
        if removed != CUT_ROWS:
            return


async def _briefly(conn: Connection, statement: sql.Composed) -> None:
    """Gives up instead of queueing behind a long transaction and blocking all after it."""
    async with conn.transaction():
        await conn.execute("SET LOCAL lock_timeout = '2s'")
        await conn.execute(statement)


async def _partitions(conn: Connection) -> list[str]:
    return [str(row[0]) for row in await (await conn.execute(_sql.partitions)).fetchall()]


async def _value(
    conn: Connection, query: str | sql.Composed, given: dict[str, object] | None = None
) -> object:
    row = await (await conn.execute(query, given)).fetchone()
    return row[0] if row else None


def _name(day: date) -> str:
    return f"outbox_{day:%Y%m%d}"
