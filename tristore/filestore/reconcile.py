"""The reconciler: takes drifting paths, looks at each again, and makes its node tell the truth."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg
from psycopg_pool import PoolTimeout

from tristore.cancellation import obedient
from tristore.db.pool import Connection
from tristore.errors import TristoreError, Unavailable
from tristore.events.payloads import ReconcileReason
from tristore.failpoints import failpoint
from tristore.filestore import changes, claims, drifts, journal, nodes, paths, seen
from tristore.filestore.announce import About
from tristore.filestore.changes import Changes, Step
from tristore.filestore.claims import Want
from tristore.filestore.content import Blobs
from tristore.filestore.differences import confirm
from tristore.filestore.drifts import Detection, Drift
from tristore.filestore.journal import Begun, Intent
from tristore.filestore.model import Caller, Mount
from tristore.filestore.seen import Seen
from tristore.filestore.settle import Settlement, buried
from tristore.filestore.walk import Comparison
from tristore.filestore.workbench import Workbench

SOURCE = "filestore.reconcile"
BATCH = 200
IDLE_SECONDS = 0.2
BUSY_SECONDS = 0.2
RENEW_SECONDS = 3.0
LONGEST_PAUSE = 300.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Group:
    """Drifts of one mount that share what their events say about where they come from."""

    mount: Mount
    blobs: Blobs
    taken: Sequence[Drift]
    later: list[tuple[Drift, float]] = field(default_factory=list)

    @property
    def cause(self) -> ReconcileReason:
        return self.taken[0].cause

    @property
    def caller(self) -> Caller:
        return Caller(source=SOURCE, correlation_id=self.taken[0].correlation_id)

    def want(self, one: Seen, subtree: bool) -> Want:
        return Want(self.mount.id, one.drift.path, subtree, makes=one.entry is not None)

    def put_off(self, drift: Drift, seconds: float | None = None) -> None:
        chosen = min(5.0, BUSY_SECONDS * drift.attempts) if seconds is None else seconds
        self.later.append((drift, chosen))


class Sorted:
    """What can be settled now, and what needs more than that."""

    def __init__(self, group: Group, begun: Begun, found: Sequence[Seen], steady: set[str]) -> None:
        self.here: list[Seen] = []
        self.leading: list[Seen] = []
        self.displacing: list[Seen] = []
        # Files that became directories: each needs a node of its own.
        self.turned = 0
        for one in found:
            node = begun.nodes.get((group.mount.id, one.drift.path))
            was_directory = node is not None and node.kind == "directory"
            is_directory = one.entry is not None and one.entry.kind == "directory"
            if one.drift.path not in steady:
                group.put_off(one.drift)
            elif was_directory and one.entry is not None and not is_directory:
                self.displacing.append(one)
            else:
                self.here.append(one)
                self.turned += node is not None and is_directory and not was_directory
                if not one.readable:
                    group.put_off(one.drift, min(LONGEST_PAUSE, 2.0**one.drift.attempts))
                elif one.drift.told and (is_directory or (was_directory and one.entry is None)):
                    self.leading.append(one)

    @property
    def done(self) -> list[Drift]:
        more = {one.drift for one in self.leading}
        return [one.drift for one in self.here if one.readable and one.drift not in more]


class Reconciler:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def run(self) -> None:
        while True:
            try:
                worked = await obedient(self.settle_due())
            except (psycopg.Error, PoolTimeout, TristoreError, OSError) as error:
                _log.warning("drift was not settled and is tried again: %s", error)
                worked = 0
            if not worked:
                await asyncio.sleep(IDLE_SECONDS)

    async def settle_due(self) -> int:
        """Says how many paths were looked at."""
        async with self._bench.pool.connection() as conn:
            taken = await drifts.take(conn, BATCH)
        groups: dict[tuple[object, ...], list[Drift]] = {}
        for drift in taken:
            key = (drift.mount_id, drift.cause, drift.correlation_id)
            groups.setdefault(key, []).append(drift)
        for group in groups.values():
            await self._settle_group(group)
        return len(taken)

    async def _settle_group(self, taken: Sequence[Drift]) -> None:
        mount = await self._bench.opened.by_id(taken[0].mount_id)
        try:
            group = Group(mount, await self._bench.blobs(mount), taken)
            async with self._held(taken):
                found, busy = await seen.look(self._bench.pool, group.blobs, taken)
                for drift in busy:
                    group.put_off(drift)
                if found:
                    await self._record(group, found)
            later = group.later
        except (TristoreError, OSError) as error:
            _log.warning("mount %s: drift waits: %s", mount.name, error)
            later = [(drift, min(60.0, 2.0**drift.attempts)) for drift in taken]
        async with self._bench.pool.connection() as conn:
            await drifts.again(conn, later)

    @asynccontextmanager
    async def _held(self, taken: Sequence[Drift]) -> AsyncIterator[None]:
        """To read a large file takes longer than a lease lasts."""
        task = asyncio.create_task(self._renew(taken))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _renew(self, taken: Sequence[Drift]) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            async with self._bench.pool.connection() as conn:
                await drifts.renew(conn, taken)

    async def _record(self, group: Group, found: Sequence[Seen]) -> None:
        """All together, or each alone if one of them is in the way."""
        async with self._begun(group, found) as begun:
            if begun.status == "begun":
                return await self._settle(group, found, begun)
        if len(found) > 1:
            for one in found:
                await self._record(group, [one])
            return
        if begun.status == "refused":
            return await self._blame_above(group, found[0].drift)
        group.put_off(found[0].drift)

    @asynccontextmanager
    async def _begun(
        self, group: Group, found: Sequence[Seen], subtree: bool = False
    ) -> AsyncIterator[Begun]:
        """The entry and its claims; what goes wrong under it ends it, with nothing changed."""
        token = uuid4().hex
        intent = Intent(
            command="reconcile",
            mount=group.mount,
            path=found[0].drift.path,
            caller=group.caller,
            owner=self._bench.owner.id,
            wanted=[group.want(one, subtree) for one in found],
            plan={"token": token, "cause": group.cause},
        )
        self._bench.owner.in_hand.add(token)
        try:
            async with self._bench.pool.connection() as conn:
                begun = await journal.begin(conn, intent, {group.mount.id: group.mount.name})
            try:
                yield begun
            except (TristoreError, OSError) as error:
                if begun.status == "begun":
                    await self._give_up(group, begun, error)
                raise
        finally:
            self._bench.owner.in_hand.discard(token)

    async def _give_up(self, group: Group, begun: Begun, error: Exception) -> None:
        step = self._step(group, "failed", error=str(error)[:500] or type(error).__name__)
        nothing = Changes(About(begun.journal_id, "reconcile"))
        async with self._bench.pool.connection() as conn:
            await changes.apply(conn, nothing, step)

    def _step(self, group: Group, state: Any = "completed", **fields: Any) -> Step:
        return Step(owner=self._bench.owner.id, caller=group.caller, state=state, **fields)

    async def _blame_above(self, group: Group, drift: Drift) -> None:
        """Something lies under what is known as a file: then that is no file any more. Only a
        bucket can hold both, and of those the tree can show but one."""
        if not group.blobs.supports_directories:
            _log.warning("mount %s: %s lies under a file", group.mount.name, drift.path)
            async with self._bench.pool.connection() as conn:
                return await drifts.settled(conn, [drift])
        over = paths.parents(drift.path)
        findings = await confirm(self._bench.pool, group.blobs, group.mount.id, over)
        detection = Detection(
            group.mount, findings.differences, drift.cause, SOURCE, drift.correlation_id
        )
        await drifts.record(self._bench.pool, detection)
        group.put_off(drift)

    async def _settle(self, group: Group, found: Sequence[Seen], begun: Begun) -> None:
        failpoint("filestore.reconcile.after_claim")
        steady = await seen.unchanged(group.blobs, found)
        work = Sorted(group, begun, found, steady)
        async with self._bench.pool.connection() as conn:
            async with conn.transaction():
                spare = await nodes.fresh_ids(conn, work.turned)
                settlement = Settlement(group.mount, begun, group.cause, spare)
                for one in work.here:
                    settlement.settle(one)
                await self._apply(conn, settlement.finished(), self._step(group))
                await drifts.settled(conn, work.done)
            failpoint("filestore.reconcile.after_settle")
        self._bench.poke()
        for one in work.leading:
            await self._follow(group, one)
        for one in work.displacing:
            await self._displace(group, one)

    async def _apply(self, conn: Connection, made: Changes, step: Step) -> None:
        if not await changes.apply(conn, made, step):
            raise Unavailable("the entry of this reconciliation was taken over")

    async def _follow(self, group: Group, one: Seen) -> None:
        """A directory that came or went did so with all that lies in it."""
        pool = self._bench.pool
        if one.entry is not None:
            comparison = Comparison(pool, group.blobs, group.mount, one.drift.path)
            async for stretch in comparison.stretches():
                async with pool.connection() as conn:
                    await drifts.follow(conn, one.drift, stretch.differing_paths())
                failpoint("filestore.reconcile.after_follow")
        async with pool.connection() as conn, conn.transaction():
            if one.entry is None:
                await drifts.follow_lost(conn, one.drift)
            await drifts.settled(conn, [one.drift])

    async def _displace(self, group: Group, one: Seen) -> None:
        """A file stands where a directory was: nothing that lay in it can come back there."""
        async with self._begun(group, [one], subtree=True) as begun:
            if begun.status != "begun" or not await seen.unchanged(group.blobs, [one]):
                return group.put_off(one.drift)
            await self._bury_below(group, one.drift.path, begun)
            async with self._bench.pool.connection() as conn, conn.transaction():
                spare = await nodes.fresh_ids(conn, 1)
                settlement = Settlement(group.mount, begun, group.cause, spare)
                settlement.settle(one)
                await self._apply(conn, settlement.finished(), self._step(group))
                await drifts.settled(conn, [one.drift])
        self._bench.poke()

    async def _bury_below(self, group: Group, path: str, begun: Begun) -> None:
        top = begun.nodes[group.mount.id, path]
        above = [begun.nodes[group.mount.id, over].id for over in claims.above(path)]
        size = self._bench.settings.chunk_nodes
        async with self._bench.pool.connection() as conn:
            while page := await nodes.tree(conn, top, group.mount, "", size):
                made = buried(page, [*above, top.id], begun.journal_id)
                await self._apply(conn, made, self._step(group, "applying"))
                failpoint("filestore.reconcile.after_chunk")
