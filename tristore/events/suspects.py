"""Suspects: which event kills its worker, told from those that merely travelled with it.

BullMQ counts how often a job's worker died. After one death the job is settled apart from others;
after two its events are processed one by one, each accused in Postgres before and acquitted after.
An accusation that stands is the third death, and the event is dead-lettered unprocessed. Counting
by event and not by job, a killer that the relay sent again in another job is known there too.
"""

import hashlib
from collections.abc import Sequence
from typing import cast

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidEvent, Violation

DEADLY = 1
_sql = load("tristore.events", "suspects.sql")


def hash_of(raw: bytes) -> bytes:
    return hashlib.sha256(raw).digest()


def verdict() -> InvalidEvent:
    message = "its worker died three times while processing it"
    return InvalidEvent("crash_loop", [Violation("", message)])


async def watch(conn: Connection) -> tuple[int, bool]:
    """What is asked before every batch: which schemas hold, and whether there are suspects."""
    row = await (await conn.execute(_sql.watch)).fetchone()
    assert row is not None
    return cast(tuple[int, bool], row)


async def deadly(conn: Connection, raw_hashes: Sequence[bytes]) -> set[bytes]:
    given = {"raw_hash": list(raw_hashes), "deaths": DEADLY}
    cursor = await conn.execute(_sql.deadly, given)
    return {row[0] for row in cast(list[tuple[bytes]], await cursor.fetchall())}


async def accuse(conn: Connection, raw_hash: bytes) -> int:
    """How many earlier accusations nobody lived to take back."""
    row = await (await conn.execute(_sql.accuse, {"raw_hash": raw_hash})).fetchone()
    return int(str(row[0])) if row else 0


async def acquit(conn: Connection, raw_hash: bytes) -> int:
    return (await conn.execute(_sql.acquit, {"raw_hash": raw_hash})).rowcount
