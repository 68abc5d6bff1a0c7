"""Owners: the processes that carry out commands, each alive as long as its lease is renewed."""

import asyncio
import logging
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import psutil
import psycopg
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.errors import Unavailable

_sql = load("tristore.filestore", "owners.sql")

LEASE_SECONDS = 15.0
BEAT_SECONDS = 3.0
# What a command may still take between its look at the clock and the step that shows.
_MARGIN_SECONDS = 3.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """A process, told from every other, also from one that got its number later."""

    host: str
    boot: str
    pid: int
    started: float

    @property
    def gone(self) -> bool:
        """Known only of this machine's own processes; others have their lease."""
        if (self.host, self.boot) != (_host(), _boot()):
            return False
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            return bool(abs(process.create_time() - self.started) > 1)
        except psutil.NoSuchProcess:
            return True


@dataclass(frozen=True, slots=True)
class OpenClaim:
    """An entry under way, and whether anybody still works on it."""

    journal_id: int
    owner: UUID | None
    token: str | None
    lost: bool


class Owner(Background):
    """This process. `in_hand` are the tokens of the entries it works on."""

    def __init__(self, pool: Pool) -> None:
        self.id = uuid4()
        self.in_hand: set[str] = set()
        self._pool = pool
        self._fresh_until = 0.0

    def check(self) -> None:
        """Right before a step that shows: the lease must outlast it. A process that was stopped
        may find the command finished by another, and the path in use for something new."""
        if _clock() > self._fresh_until:
            raise Unavailable(
                "this server lost touch with the database; the command is finished or undone "
                "by itself, look at its journal entry"
            )

    async def _begin(self) -> None:
        await self._beat()

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await obedient(self._beat())
            except (psycopg.Error, PoolTimeout, OSError) as error:
                _log.warning("the lease was not renewed: %s", type(error).__name__)

    async def _beat(self) -> None:
        asked = _clock()
        given = {"id": self.id, "lease": LEASE_SECONDS, "host": _host(), "boot": _boot()}
        given |= {"pid": os.getpid(), "started": psutil.Process().create_time()}
        async with self._pool.connection() as conn:
            await conn.execute(_sql.register, given)
        self._fresh_until = asked + LEASE_SECONDS - _MARGIN_SECONDS

    async def leave(self) -> None:
        """What is still open is anybody's now."""
        try:
            async with self._pool.connection() as conn:
                await conn.execute(_sql.leave, {"id": self.id})
        except (psycopg.Error, PoolTimeout, OSError) as error:
            _log.warning("the owner's row stays until its lease ends: %s", type(error).__name__)


async def open_claims(conn: Connection, owner: Owner) -> list[OpenClaim]:
    """Every entry under way; `lost` are those nobody works on: their owner is dead, or it is this
    process and has forgotten them, as after a commit whose answer never came."""
    rows = cast(Any, await (await conn.execute(_sql.open_claims)).fetchall())
    return [_claim(row, owner) for row in rows]


def _claim(row: tuple[Any, ...], owner: Owner) -> OpenClaim:
    journal_id, its_owner, token, over, *place = row
    if its_owner == owner.id:
        lost = token not in owner.in_hand
    else:
        lost = over or Place(*place).gone
    return OpenClaim(journal_id, its_owner, token, lost)


async def sweep(conn: Connection) -> int:
    return (await conn.execute(_sql.sweep)).rowcount


def _clock() -> float:
    """Runs on while the process is stopped and the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _host() -> str:
    """Numbers of processes mean something only within their namespace."""
    return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
