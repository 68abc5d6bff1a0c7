"""Recovery: finishes or undoes the commands that dead processes left between their two commits."""

import asyncio
import logging
import time
from datetime import UTC, datetime

import psycopg
from psycopg_pool import PoolTimeout

from tristore.background import Background
from tristore.cancellation import obedient
from tristore.errors import TristoreError
from tristore.events.payloads import Command
from tristore.filestore import (
    changes,
    claims,
    copy,
    delete,
    directory,
    journal,
    metadata,
    move,
    nodes,
    owners,
    put,
)
from tristore.filestore.announce import About
from tristore.filestore.carry import Carry, carry_out
from tristore.filestore.changes import Changes, Step
from tristore.filestore.journal import OpenEntry, Place
from tristore.filestore.model import Mount, Node
from tristore.filestore.owners import OpenClaim
from tristore.filestore.work import Work
from tristore.filestore.workbench import Workbench

# The same code carries a command out for the first time and after a crash: its steps can be
# repeated.
CARRY: dict[Command, Carry] = {
    "put": put.carry,
    "createDirectory": directory.carry,
    "move": move.carry,
    "copy": copy.carry,
    "delete": delete.carry,
    "updateMetadata": metadata.carry,
}
_EVERY_SECONDS = 2.0
_ROUNDS = 4

_log = logging.getLogger(__name__)


class Recovery(Background):
    """At once when a process starts, and again and again: others die too."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def _work(self) -> None:
        rounds: set[asyncio.Task[None]] = set()
        try:
            while True:
                # Each on its own: a large tree takes long, and others must not wait for it.
                rounds = {one for one in rounds if not one.done()}
                if len(rounds) < _ROUNDS:
                    rounds.add(asyncio.create_task(self._round()))
                await asyncio.sleep(_EVERY_SECONDS)
        finally:
            for one in rounds:
                one.cancel()
            await asyncio.gather(*rounds, return_exceptions=True)

    async def _round(self) -> None:
        try:
            await obedient(recover(self._bench))
        except (psycopg.Error, PoolTimeout, TristoreError, OSError) as error:
            _log.warning("recovery tries again: %s", type(error).__name__)


async def recover(bench: Workbench) -> int:
    """How many entries were taken up; one that cannot be ended now is left for the next time."""
    async with bench.pool.connection() as conn:
        found = await owners.open_claims(conn, bench.owner)
    taken = 0
    for claim in sorted((one for one in found if one.lost), key=lambda one: one.journal_id):
        taken += await _recover_one(bench, claim)
    return taken


async def _recover_one(bench: Workbench, claim: OpenClaim) -> bool:
    token = claim.token or str(claim.journal_id)
    if token in bench.owner.in_hand:
        return False
    bench.owner.in_hand.add(token)
    try:
        entry = await _take(bench, claim)
        if entry is None:
            return False
        _log.info("%s %d of a dead process is taken up", entry.command, entry.id)
        if entry.command == "reconcile":
            return await _release(bench, entry)
        work = await _work(bench, entry)
        await carry_out(bench, work, CARRY[entry.command])
    except TristoreError as error:
        _log.warning("entry %d: %s", claim.journal_id, error)
        await _give_back(bench, claim)
    except (psycopg.Error, PoolTimeout):
        raise
    except Exception:
        # One entry that cannot be carried out must not keep the others waiting.
        _log.exception("entry %d stays open", claim.journal_id)
    finally:
        bench.owner.in_hand.discard(token)
    return True


async def _release(bench: Workbench, entry: OpenEntry) -> bool:
    """Its paths are still noted as drift, and another entry will settle what this one did not."""
    nothing = Changes(About(entry.id, "reconcile"))
    why = "its worker died; what it left is settled by a later entry"
    step = Step(owner=bench.owner.id, caller=entry.caller(), state="failed", error=why)
    async with bench.pool.connection() as conn:
        return await changes.apply(conn, nothing, step)


async def _take(bench: Workbench, claim: OpenClaim) -> OpenEntry | None:
    async with bench.pool.connection() as conn:
        if not await journal.take(conn, claim.journal_id, claim.owner, bench.owner.id):
            return None
        found = await journal.open_entries(conn, [claim.journal_id])
    return found[0] if found else None


async def _give_back(bench: Workbench, claim: OpenClaim) -> None:
    """To whoever can end it: the folder may be one that only another machine sees."""
    async with bench.pool.connection() as conn:
        await journal.take(conn, claim.journal_id, bench.owner.id, None)


async def _work(bench: Workbench, entry: OpenEntry) -> Work:
    mount = await bench.opened.by_id(entry.mount_id)
    target = mount
    if entry.target_mount_id is not None:
        target = await bench.opened.by_id(entry.target_mount_id)
    ends = [(mount, entry.path)]
    if entry.target_path is not None:
        ends.append((target, entry.target_path))
    standing, fresh = await _standing(bench, ends)
    return Work(
        journal_id=entry.id,
        command=entry.command,
        caller=entry.caller(),
        mount=mount,
        path=entry.path,
        target_mount=target,
        target_path=entry.path if entry.target_path is None else entry.target_path,
        plan=entry.plan,
        nodes=standing,
        fresh=fresh,
        progress=entry.progress,
        bytes=entry.bytes,
        nodes_affected=entry.nodes_affected,
        started=time.monotonic() - (datetime.now(UTC) - entry.started_at).total_seconds(),
        resumed=True,
    )


async def _standing(
    bench: Workbench, ends: list[tuple[Mount, str]]
) -> tuple[dict[Place, Node], list[int]]:
    """The nodes at and above the paths, and ids for those that are absent."""
    found: dict[Place, Node] = {}
    places = 0
    async with bench.pool.connection() as conn:
        for mount, path in ends:
            asked = [*claims.above(path), path]
            places += len(asked)
            at = await nodes.at_paths(conn, mount, asked)
            found |= {(mount.id, node.path): node for node in at.values()}
        return found, await nodes.fresh_ids(conn, places)
