"""The workbench: what every command is carried out with, from its first commit to its last."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout

from tristore.config import FilestoreSettings
from tristore.db.pool import Pool
from tristore.errors import Busy, KeyConflict, OutcomeUnknown, TristoreError, Unavailable
from tristore.events.payloads import FilestoreCommandCompleted
from tristore.events.poke import Poke
from tristore.filestore import changes as recording
from tristore.filestore import journal, refused, results
from tristore.filestore.changes import Changes, Step
from tristore.filestore.content import Blobs
from tristore.filestore.gathering import Gathering
from tristore.filestore.journal import Begun, Intent, Known
from tristore.filestore.model import Caller, Mount, Node, Outcome
from tristore.filestore.opened import Opened
from tristore.filestore.owners import Owner
from tristore.filestore.work import Work

_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_MOST_ERROR = 2000
# A step with more nodes than this is long, and is committed by itself.
_FEW = 16


class Stopping(Unavailable):
    """The process ends; whoever comes next goes on with the command."""


@dataclass(slots=True)
class Workbench:
    pool: Pool
    settings: FilestoreSettings
    opened: Opened
    owner: Owner
    poke: Poke
    stopping: bool = False
    _beginnings: Gathering[Intent, Begun] = field(init=False)
    _steps: Gathering[tuple[Changes, Step], bool] = field(init=False)

    def __post_init__(self) -> None:
        self._beginnings = Gathering(self._begin_all)
        self._steps = Gathering(self._apply_all)

    async def blobs(self, mount: Mount) -> Blobs:
        return await self.opened.blobs(mount)

    async def begin(self, intent: Intent) -> Work | Outcome:
        """The first commit. An outcome: the Idempotency-Key was answered before, so again."""
        deadline = time.monotonic() + self.settings.wait_seconds
        pause = _FIRST_PAUSE
        while True:
            begun = await self._try(intent)
            if begun.status == "begun":
                return _work(intent, begun)
            if begun.status == "refused":
                raise refused.explain(intent.wanted, begun.nodes)
            if begun.status == "known" and (outcome := await self._again(intent, begun)):
                return outcome
            if time.monotonic() > deadline:
                raise Busy(_busy(begun))
            if begun.status != "changed":
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def answered(self, caller: Caller, request_hash: bytes) -> Outcome | None:
        """For commands that look before they begin: what they would see is the world after they
        were carried out. None: the key, if any, is new."""
        if caller.idempotency_key is None:
            return None
        deadline = time.monotonic() + self.settings.wait_seconds
        while known := await self._keyed(caller):
            if outcome := _repeated(known, request_hash):
                return outcome
            if time.monotonic() > deadline:
                raise Busy(_busy(Begun("known", known.id)))
            await asyncio.sleep(_LONGEST_PAUSE)
        return None

    async def knows(self, caller: Caller) -> bool:
        """Whether a request with this Idempotency-Key has begun before."""
        return caller.idempotency_key is not None and await self._keyed(caller) is not None

    async def _keyed(self, caller: Caller) -> Known | None:
        async with self.pool.connection() as conn:
            return await journal.by_key(conn, caller)

    async def _try(self, intent: Intent) -> Begun:
        try:
            if any(want.subtree for want in intent.wanted):
                # It may wait long for the mount, and would hold up those that begin with it.
                return (await self._begin_all([intent]))[0]
            return await self._beginnings.call(intent)
        except psycopg.errors.UniqueViolation:
            # Two requests with one Idempotency-Key at the same moment: the other was first.
            return Begun("changed", 0)

    async def _begin_all(self, intents: Sequence[Intent]) -> list[Begun]:
        # In the order of paths, as each takes its claims: two rounds do not wait for each other.
        ordered = sorted(range(len(intents)), key=lambda n: _place(intents[n]))
        async with self.pool.connection() as conn:
            asked = [intents[n] for n in ordered]
            begun = await journal.begin_all(conn, asked, self.opened.names)
        found = dict(zip(ordered, begun, strict=True))
        return [found[n] for n in range(len(intents))]

    async def _again(self, intent: Intent, begun: Begun) -> Outcome | None:
        async with self.pool.connection() as conn:
            known = await journal.known(conn, begun.journal_id)
        return None if known is None else _repeated(known, intent.request_hash)

    async def check(self, work: Work) -> None:
        """Right before a step on a whole tree, which no fingerprint guards: the entry must still
        be this process's own."""
        async with self.pool.connection() as conn:
            mine = await journal.is_open(conn, work.journal_id, self.owner.id)
        if not mine:
            raise OutcomeUnknown(_unknown(work))
        self.owner.check()

    async def step(self, work: Work, changes: Changes, progress: dict[str, Any]) -> None:
        """A commit on the way: these changes, and how far the command has come with them."""
        work.progress = progress
        step = Step(owner=self.owner.id, caller=work.caller, state="applying", progress=progress)
        await self._apply(work, changes, step)
        if self.stopping:
            raise Stopping("the server stops; the command goes on when it is back")

    async def settle(self, work: Work, changes: Changes, node: Node) -> Outcome:
        """The last commit: what changed, the end of the entry and of its claims."""
        keyed = work.caller.idempotency_key is not None
        told = _told(work, changes, "completed")
        step = Step(
            owner=self.owner.id,
            caller=work.caller,
            node_id=node.id,
            result=results.write(node) if keyed else None,
            told=told,
        )
        await self._apply(work, changes, step)
        return Outcome(node, work.journal_id)

    async def fail(self, work: Work, error: TristoreError) -> None:
        """Ends the entry with nothing changed."""
        why = str(error)[:_MOST_ERROR] or type(error).__name__
        nothing = work.changes()
        told = _told(work, nothing, "failed", why)
        step = Step(owner=self.owner.id, caller=work.caller, state="failed", error=why, told=told)
        await self._apply(work, nothing, step)

    async def _apply(self, work: Work, changes: Changes, step: Step) -> None:
        try:
            if len(changes.nodes) > _FEW:
                done = (await self._apply_all([(changes, step)]))[0]
            else:
                done = await self._steps.call((changes, step))
        except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
            raise OutcomeUnknown(_unknown(work)) from error
        if not done:
            raise OutcomeUnknown(_unknown(work))
        work.bytes += changes.bytes
        work.nodes_affected += len(changes.nodes)
        if changes.payloads or step.told:
            self.poke()

    async def _apply_all(self, taken: Sequence[tuple[Changes, Step]]) -> list[bool]:
        async with self.pool.connection() as conn:
            return await recording.apply_all(conn, taken)


def _place(intent: Intent) -> tuple[int, str]:
    return min((want.mount_id, want.path) for want in intent.wanted)


def _work(intent: Intent, begun: Begun) -> Work:
    path = intent.path if intent.target_path is None else intent.target_path
    return Work(
        journal_id=begun.journal_id,
        command=intent.command,
        caller=intent.caller,
        mount=intent.mount,
        path=intent.path,
        target_mount=intent.target_mount or intent.mount,
        target_path=path,
        plan=intent.plan,
        nodes=begun.nodes,
        fresh=begun.fresh,
    )


def _repeated(known: Known, request_hash: bytes | None) -> Outcome | None:
    """None while the first request with the key is under way."""
    if known.request_hash != request_hash:
        raise KeyConflict(
            "the Idempotency-Key was used for another request; choose a key of its own"
        )
    if known.state != "completed":
        return None
    return Outcome(results.read(known.result), known.id, replayed=True)


def _told(
    work: Work, changes: Changes, status: Any, error: str | None = None
) -> FilestoreCommandCompleted:
    return FilestoreCommandCompleted(
        journal_id=work.journal_id,
        command=work.command,
        mount=work.mount.name,
        path=work.path,
        status=status,
        duration_ms=max(0, round((time.monotonic() - work.started) * 1000)),
        bytes=work.bytes + changes.bytes,
        nodes_affected=work.nodes_affected + len(changes.nodes),
        idempotency_key=work.caller.idempotency_key,
        principal=work.caller.principal,
        error=error,
    )


def _busy(begun: Begun) -> str:
    if begun.status == "known":
        return f"the first request with this Idempotency-Key is under way ({begun.journal_id})"
    return f"journal entry {begun.journal_id} works on this path; wait for it and try again"


def _unknown(work: Work) -> str:
    return (
        f"the command may or may not have ended; journal entry {work.journal_id} will tell, and "
        "it is finished or undone by itself"
    )
