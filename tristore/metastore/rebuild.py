"""A rebuild: the log read again from its beginning, and only what differs from it written."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson
from psycopg.rows import class_row, tuple_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import EpochChanged, PositionAhead, PositionGone
from tristore.events import cursors
from tristore.events.cursors import Cursor
from tristore.metastore.alignment import Alignment, Outcome
from tristore.metastore.node_plan import ACTOR
from tristore.metastore.node_view import NodeChange
from tristore.metastore.reading import items
from tristore.metastore.sync_control import CONSUMER, Turn

_sql = load("tristore.metastore", "rebuild.sql")
_log = logging.getLogger(__name__)

PAGE = 500
WINDOW = 5000


@dataclass(frozen=True, slots=True)
class Rebuild:
    id: int
    namespace: str
    epoch: str
    sequence: int
    target: int
    compared: str


async def request(conn: Connection, namespace: str, by: str) -> bool:
    """False if one is under way already."""
    row = await (await conn.execute(_sql.request, {"namespace": namespace, "by": by})).fetchone()
    if row is None:
        return False
    await conn.execute(_sql.forget_truth)
    return True


class Rebuilding:
    """Works on the open rebuild, a page a turn. Turns are shared with the sync, so the two never
    write at the same time; what one has written the other finds, by the version of the node."""

    def __init__(self, alignment: Alignment, types: Sequence[str]) -> None:
        self._alignment = alignment
        self._types = list(types)

    async def step(self, conn: Connection, turn: Turn) -> Outcome | None:
        """Reads on; at the end compares the records with what was read. None: nothing is open."""
        cursor = conn.cursor(row_factory=class_row(Rebuild))
        job = await (await cursor.execute(_sql.take)).fetchone()
        if job is None:
            return None
        try:
            if job.namespace != self._alignment.namespace:
                return await self._finish(conn, job, "the sync writes to another namespace now")
            if job.sequence < job.target:
                return (await self._read(conn, job))[1]
            return await self._compare(conn, job, turn)
        except PositionGone as gone:
            await _advance(conn, job, sequence=gone.earliest - 1)
        except (EpochChanged, PositionAhead):
            return await self._finish(conn, job, "the log was restored meanwhile; start another")
        return Outcome()

    async def _read(self, conn: Connection, job: Rebuild) -> tuple[int, Outcome]:
        """One page; where it ends, and what it changed."""
        place = Cursor(job.sequence, job.epoch, self._types)
        page = await cursors.read(conn, CONSUMER, place, PAGE)
        found = items(page.events)
        outcome = await self._alignment.apply(conn, found)
        await _collect(conn, [item for item in found if isinstance(item, NodeChange)])
        progress = {"events": len(page.events), "changed": outcome.written}
        await _advance(conn, job, sequence=page.through, **progress)
        return page.through, outcome

    async def _compare(self, conn: Connection, job: Rebuild, turn: Turn) -> Outcome:
        """A record may have been changed behind the store's back, or claim a version that no event
        has; that is known once everything the sync has applied was read here too."""
        total = Outcome()
        while job.sequence < turn.sequence:
            through, outcome = await self._read(conn, job)
            total += outcome
            job = replace(job, sequence=through)
        until = await _value(conn, _sql.window_end, after=job.compared, window=WINDOW)
        if until is None:
            return total + await self._finish(conn, job, None)
        untrue = await self._untrue(conn, job, until)
        outcome = await self._alignment.apply(conn, untrue, mending=True)
        await _advance(conn, job, changed=outcome.written, compared=until)
        return total + outcome

    async def _untrue(self, conn: Connection, job: Rebuild, until: str) -> list[NodeChange]:
        given = {"namespace": job.namespace, "after": job.compared, "until": until, "actor": ACTOR}
        cursor = conn.cursor(row_factory=tuple_row)
        rows = await (await cursor.execute(_sql.untrue, given)).fetchall()
        return [NodeChange(**change) for (change,) in rows]

    async def _finish(self, conn: Connection, job: Rebuild, error: str | None) -> Outcome:
        unknown = 0 if error else await _value(conn, _sql.unknown, namespace=job.namespace)
        await conn.execute(_sql.finish, {"id": job.id, "unknown": unknown, "error": error})
        await conn.execute(_sql.forget_truth)
        _log.info("rebuild ended", extra={"rebuild": job.id, "reason": error or "done"})
        return Outcome()


async def _advance(conn: Connection, job: Rebuild, **changes: object) -> None:
    given = {"sequence": job.sequence, "compared": job.compared, "events": 0, "changed": 0}
    await conn.execute(_sql.advance, {"id": job.id, **given, **changes})


async def _collect(conn: Connection, changes: Sequence[NodeChange]) -> None:
    latest: dict[str, NodeChange] = {}
    for change in changes:
        known = latest.get(change.key)
        if known is None or known.version < change.version:
            latest[change.key] = change
    rows = [
        {"key": key, "version": change.version, "change": asdict(change)}
        for key, change in latest.items()
    ]
    await conn.execute(_sql.collect, {"changes": orjson.dumps(rows).decode()})


async def _value(conn: Connection, query: str, **given: Any) -> Any:
    row = await (await conn.execute(query, given)).fetchone()
    return row[0] if row else None
