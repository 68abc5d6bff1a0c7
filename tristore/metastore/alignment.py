"""Brings the records of nodes in line with what the filestore told, through the one writer."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from tristore.cancellation import obey_cancellation
from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import Busy, Transient, Violation
from tristore.metastore import refusals, writing
from tristore.metastore.hooks import Hooks
from tristore.metastore.node_plan import NodePlan
from tristore.metastore.node_view import NodeChange
from tristore.metastore.reading import Item
from tristore.metastore.refusals import Refusal
from tristore.metastore.rules import Rulebook

_sql = load("tristore.metastore", "alignment.sql")
_log = logging.getLogger(__name__)

SOURCE = "metastore.sync"
# Data Postgres does not take, by the class of its error: wrong values, broken constraints, limits.
_OF_THE_DATA = ("22", "23", "54")


@dataclass(frozen=True, slots=True)
class Outcome:
    written: int = 0
    refused: int = 0

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(self.written + other.written, self.refused + other.refused)


class Alignment:
    def __init__(self, namespace: str, rulebook: Rulebook, hooks: Hooks) -> None:
        self.namespace = namespace
        self._rulebook = rulebook
        self._hooks = hooks

    async def rules_version(self, conn: Connection) -> int:
        return (await self._rulebook.hold(conn, [self.namespace]))[self.namespace].version

    async def apply(
        self, conn: Connection, items: Sequence[Item], *, mending: bool = False
    ) -> Outcome:
        """Writes what is newer than the records, in the caller's transaction, and keeps what may
        not be written as a refusal. `mending` writes whatever differs, newer or not.

        What fails for a reason of its own is found by halving and kept as a refusal too: no event
        can hold up those behind it. When a server is away everything fails; try again later.
        """
        if not items:
            return Outcome()
        try:
            return await self._attempt(conn, items, mending)
        except Exception as error:
            obey_cancellation()
            if not _is_its_own_fault(error):
                raise
            failure = error
        if len(items) > 1:
            half = len(items) // 2
            first = await self.apply(conn, items[:half], mending=mending)
            return first + await self.apply(conn, items[half:], mending=mending)
        return await self._give_up(conn, items[0], failure)

    async def _attempt(self, conn: Connection, items: Sequence[Item], mending: bool) -> Outcome:
        try:
            async with conn.transaction():
                return await self._align(conn, items, mending)
        except Busy:
            keys = [item.key for item in items]
            await conn.execute(_sql.renumber, {"namespace": self.namespace, "keys": keys})
        async with conn.transaction():
            return await self._align(conn, items, mending)

    async def _align(self, conn: Connection, items: Sequence[Item], mending: bool) -> Outcome:
        rules = (await self._rulebook.hold(conn, [self.namespace]))[self.namespace]
        if not rules.version:
            await conn.execute(_sql.make_namespace, {"name": self.namespace})
        changes = [item for item in items if isinstance(item, NodeChange)]
        records = await writing.lock(conn, self.namespace, {change.key for change in changes})
        plan = NodePlan(self.namespace, records, rules, self._hooks)
        for change in changes:
            plan.add(change, mending=mending)
        await writing.write(conn, plan.wanted, source=SOURCE)
        if await refusals.exist(conn, self.namespace):
            await refusals.clear(conn, self.namespace, changes, plan.versions)
        refused = plan.refused + [item for item in items if isinstance(item, Refusal)]
        if refused:
            await refusals.keep(conn, self.namespace, rules.version, refused)
        return Outcome(len(plan.wanted), len(refused))

    async def _give_up(self, conn: Connection, item: Item, error: Exception) -> Outcome:
        _log.error("an event cannot be applied", extra={"event": item.event_id}, exc_info=error)
        refusal = item
        if isinstance(item, NodeChange):
            what = f"could not be written ({type(error).__name__}); the sync's log says why"
            refusal = Refusal.of(item, "failed", [Violation("", what)])
        assert isinstance(refusal, Refusal)
        version = await self.rules_version(conn)
        await refusals.keep(conn, self.namespace, version, [refusal])
        return Outcome(refused=1)


def _is_its_own_fault(error: Exception) -> bool:
    """Whether the same event would fail again on a healthy platform."""
    if isinstance(error, psycopg.Error):
        if error.sqlstate is None:
            return isinstance(error, psycopg.DataError | psycopg.ProgrammingError)
        return error.sqlstate.startswith(_OF_THE_DATA)
    return not isinstance(error, Transient | OSError | MemoryError)
