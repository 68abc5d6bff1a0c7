"""Drift: paths seen to differ from their nodes, told once and kept until they are settled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import uuid4

from tristore.db.deadline import connection_within
from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.events import outbox
from tristore.events.payloads import DriftReason, FilestoreDriftDetected, ReconcileReason
from tristore.failpoints import failpoint
from tristore.filestore.differences import Difference
from tristore.filestore.model import Mount

_sql = load("tristore.filestore", "drifts.sql")

# A worker that has taken a path and says nothing for so long is taken for dead.
LEASE_SECONDS = 10.0
# A mount that lacks watches goes on lacking them, whatever an audit finds.
NO_WATCHES = "the system has no watches left; raise fs.inotify.max_user_watches"
_LOOK_SECONDS = 1.5
# After as many, nobody who asked for an audit is kept waiting for the path.
PATIENT_TRIES = 8


@dataclass(frozen=True, slots=True)
class Detection:
    """Differences found together; they share a journal entry and a correlation id."""

    mount: Mount
    differences: Sequence[Difference]
    cause: ReconcileReason
    source: str
    correlation_id: str | None = None


class Drift(NamedTuple):
    """A path to settle, as its row stood when it was taken. What was found with a directory that
    came or went is settled like the rest, but was not `told` as drift by itself."""

    mount_id: int
    path: str
    reason: DriftReason
    cause: ReconcileReason
    correlation_id: str | None
    attempts: int
    told: bool
    detected_at: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is still to be settled, for how long it has been due, and the jobs by kind and state:
    how many, and how much they looked at."""

    drifts: int
    drift_seconds: float
    job_seconds: float
    mounts: int
    degraded_mounts: int
    why_degraded: str | None
    jobs: dict[tuple[str, str], tuple[int, int]]


async def record(pool: Pool, found: Detection) -> int:
    """Keeps and tells what is new among the differences; says how many were."""
    if not found.differences:
        return 0
    async with pool.connection() as conn:
        async with conn.transaction():
            told = await record_in(conn, found)
        failpoint("filestore.reconcile.after_detect")
        if told:
            await poke(conn)
    return told


async def record_in(conn: Connection, found: Detection) -> int:
    """The same in the caller's transaction."""
    correlation_id = found.correlation_id or uuid4().hex
    given: dict[str, Any] = {
        "mount_id": found.mount.id,
        "cause": found.cause,
        "correlation_id": correlation_id,
        "paths": [one.path for one in found.differences],
        "reasons": [one.reason for one in found.differences],
    }
    rows = cast(Any, await (await conn.execute(_sql.note, given)).fetchall())
    fresh = {path for path, is_fresh in rows if is_fresh}
    new = [one for one in found.differences if one.path in fresh]
    if new:
        await _tell(conn, found, new, correlation_id)
    return len(new)


async def _tell(
    conn: Connection, found: Detection, new: Sequence[Difference], correlation_id: str
) -> None:
    mount = found.mount
    given: dict[str, Any] = {"mount_id": mount.id, "path": new[0].path, "nodes": len(new)}
    given |= {"correlation_id": correlation_id, "source": found.source, "cause": found.cause}
    await conn.execute(_sql.numbering)
    ((journal_id,),) = cast(Any, await (await conn.execute(_sql.journal, given)).fetchall())
    paths = [one.path for one in new]
    await conn.execute(
        _sql.number, {"journal_id": journal_id, "mount_id": mount.id, "paths": paths}
    )
    payloads = [_payload(mount.name, one, journal_id) for one in new]
    await outbox.add_many(
        conn, [(payload, correlation_id) for payload in payloads], source=found.source
    )


def _payload(mount: str, one: Difference, journal_id: int) -> FilestoreDriftDetected:
    node_id = None if one.node_id is None else str(one.node_id)
    return FilestoreDriftDetected(
        mount=mount, path=one.path, reason=one.reason, journal_id=journal_id, node_id=node_id
    )


async def take(conn: Connection, limit: int) -> list[Drift]:
    """What is due, held for as long as the lease lasts."""
    given = {"limit": limit, "lease": LEASE_SECONDS}
    rows = await (await conn.execute(_sql.take, given)).fetchall()
    return sorted(Drift(*cast(Any, row)) for row in rows)


async def settled(conn: Connection, done: Iterable[Drift]) -> None:
    """In the transaction that records what was found."""
    for mount_id, some in _by_mount(done).items():
        await conn.execute(_sql.settled, {"mount_id": mount_id, **_columns(some)})


async def again(conn: Connection, later: Iterable[tuple[Drift, float]]) -> None:
    """To be looked at again after so many seconds."""
    seconds = dict(later)
    for mount_id, some in _by_mount(seconds).items():
        given = _columns(some) | {"seconds": [seconds[one] for one in some]}
        await conn.execute(_sql.again, {"mount_id": mount_id, **given})


async def now(pool: Pool) -> datetime:
    """By the clock that stamps the rows."""
    async with pool.connection() as conn:
        ((moment,),) = cast(Any, await (await conn.execute(_sql.now)).fetchall())
    return cast(datetime, moment)


async def is_open(conn: Connection, mount_id: int, prefix: str, until: datetime) -> bool:
    """Whether something found in the directory until then waits for its first tries."""
    given = {"mount_id": mount_id, "path": prefix, "until": until, "tries": PATIENT_TRIES}
    return await (await conn.execute(_sql.open, given)).fetchone() is not None


async def renew(conn: Connection, held: Iterable[Drift]) -> None:
    for mount_id, some in _by_mount(held).items():
        given = {"mount_id": mount_id, "lease": LEASE_SECONDS, **_columns(some)}
        await conn.execute(_sql.renew, given)


async def degrade(conn: Connection, mount_id: int, why: str | None) -> None:
    await conn.execute(_sql.degrade, {"mount_id": mount_id, "why": why})


async def audited(conn: Connection, mount: Mount, began: datetime) -> None:
    """`mount` as it was when the audit began."""
    made_up_for = None if lasts(mount.degraded) else mount.degraded
    given = {"mount_id": mount.id, "began": began, "degraded": made_up_for}
    await conn.execute(_sql.audited, given)


def lasts(degraded: str | None) -> bool:
    """Whether only a watch on every directory ends it."""
    return degraded is not None and degraded.startswith(NO_WATCHES)


async def waiting(pool: Pool) -> Waiting:
    """For readiness and metrics; whatever state the tables are in, it must not take long."""
    async with connection_within(pool, _LOOK_SECONDS) as conn:
        (row,) = cast(Any, await (await conn.execute(_sql.waiting)).fetchall())
        done = cast(Any, await (await conn.execute(_sql.jobs)).fetchall())
    jobs = {(kind, state): (count, scanned) for kind, state, count, scanned in done}
    return Waiting(row[0], row[1], row[2], row[3], row[4], row[5], jobs)


async def poke(conn: Connection) -> None:
    await conn.execute(_sql.poke)


async def follow(conn: Connection, directory: Drift, found: Sequence[str]) -> None:
    """Content of a directory that came, to be settled after it."""
    given: dict[str, Any] = {"paths": list(found), "reason": "created"}
    await conn.execute(_sql.follow, {**_origin(directory), **given})


async def follow_lost(conn: Connection, directory: Drift) -> None:
    """Everything tracked under a directory that went."""
    await conn.execute(_sql.follow_lost, {**_origin(directory), "path": directory.path})


def _origin(drift: Drift) -> dict[str, Any]:
    return {
        "mount_id": drift.mount_id,
        "cause": drift.cause,
        "correlation_id": drift.correlation_id,
        "detected_at": drift.detected_at,
    }


def _by_mount(given: Iterable[Drift]) -> dict[int, list[Drift]]:
    found: dict[int, list[Drift]] = {}
    for one in given:
        found.setdefault(one.mount_id, []).append(one)
    return found


def _columns(some: Sequence[Drift]) -> dict[str, Any]:
    return {"paths": [one.path for one in some], "times": [one.detected_at for one in some]}
