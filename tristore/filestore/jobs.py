"""Imports and audits as rows: asked for over HTTP or by the clock, done by the reconcile worker."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import KeyConflict, NotFound
from tristore.filestore import paths
from tristore.filestore.model import Caller, Mount, time_text
from tristore.filestore.owners import Place

_sql = load("tristore.filestore", "jobs.sql")

JobKind = Literal["import", "reconcile"]
# Why an audit runs; only the last is asked for by somebody.
JobReason = Literal["schedule", "overflow", "exhausted", "started", "request"]


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    kind: JobKind
    mount_id: int
    mount: str
    path: str
    state: Literal["queued", "running", "completed", "failed"]
    reason: str
    options: dict[str, Any]
    progress: dict[str, int]
    error: str | None
    principal: str | None
    correlation_id: str | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "kind": self.kind,
            "mount": self.mount,
            "path": self.path,
            "state": self.state,
            "reason": self.reason,
            "options": self.options,
            "progress": self.progress,
            "error": self.error,
            "principal": self.principal,
            "correlationId": self.correlation_id,
            "createdAt": time_text(self.created_at),
            "startedAt": time_text(self.started_at),
            "completedAt": time_text(self.completed_at),
        }


@dataclass(frozen=True, slots=True)
class JobRequest:
    """`path` is the directory to begin at; empty for the whole mount."""

    kind: JobKind
    path: str = ""
    options: dict[str, Any] = field(default_factory=dict)


async def create(conn: Connection, mount: Mount, wanted: JobRequest, caller: Caller) -> Job:
    """A queued job; the same one again for the same Idempotency-Key of the same token."""
    given = {
        "kind": wanted.kind,
        "mount_id": mount.id,
        "path": paths.check_prefix(wanted.path),
        "reason": "request",
        "options": Jsonb(wanted.options),
        "principal": caller.principal,
        "token_id": caller.token_id,
        "idempotency_key": caller.idempotency_key,
        "correlation_id": caller.correlation_id,
    }
    row = await (await conn.execute(_sql.create, given)).fetchone()
    if row is not None:
        return await get(conn, int(str(row[0])))
    row = await (await conn.execute(_sql.by_key, given)).fetchone()
    assert row is not None
    found = await get(conn, int(str(row[0])))
    if (found.kind, found.mount_id, found.path, found.options) != (
        wanted.kind,
        mount.id,
        given["path"],
        wanted.options,
    ):
        raise KeyConflict("this Idempotency-Key was used for another request; choose a new one")
    return found


async def get(conn: Connection, job_id: int, caller: Caller | None = None) -> Job:
    cursor = conn.cursor(row_factory=class_row(Job))
    found = await (await cursor.execute(_sql.get, {"id": job_id})).fetchone()
    if found is None or (caller is not None and not caller.sees(found.mount)):
        raise NotFound("there is no such job; it may have been finished and forgotten long ago")
    return found


async def page(
    conn: Connection, caller: Caller, kind: JobKind | None, before: int | None, limit: int
) -> list[Job]:
    """The newest first, of the mounts the caller sees."""
    given = {"kind": kind, "mounts": caller.mounts, "before": before, "limit": limit}
    cursor = conn.cursor(row_factory=class_row(Job))
    return await (await cursor.execute(_sql.page, given)).fetchall()


async def take(conn: Connection, owner: UUID) -> Job | None:
    async with conn.transaction():
        await conn.execute(_sql.alone)
        row = await (await conn.execute(_sql.take, {"owner": owner})).fetchone()
    return None if row is None else await get(conn, int(str(row[0])))


async def take_from_the_dead(conn: Connection) -> None:
    """Jobs whose worker is gone wait again; what they had done by then stays done."""
    for job_id, owner, over, *place in cast(
        Any, await (await conn.execute(_sql.running)).fetchall()
    ):
        if over or Place(*place).gone:
            await conn.execute(_sql.give_back, {"id": job_id, "owner": owner})


async def show_progress(conn: Connection, job: Job, owner: UUID, progress: dict[str, int]) -> bool:
    """False: another worker has the job now."""
    given = {"id": job.id, "owner": owner, "progress": Jsonb(progress)}
    return await (await conn.execute(_sql.progress, given)).fetchone() is not None


async def finish(
    conn: Connection, job: Job, owner: UUID, progress: dict[str, int], error: str | None = None
) -> bool:
    given: dict[str, Any] = {"id": job.id, "owner": owner, "progress": Jsonb(progress)}
    given |= {"error": error, "state": "completed" if error is None else "failed"}
    return await (await conn.execute(_sql.finish, given)).fetchone() is not None


async def give_back(conn: Connection, job: Job, owner: UUID) -> None:
    await conn.execute(_sql.give_back, {"id": job.id, "owner": owner})


async def schedule(conn: Connection, default_seconds: int) -> int:
    """Queues the audits whose time has come; says how many."""
    return (await conn.execute(_sql.schedule, {"default": default_seconds})).rowcount


async def want_audit(conn: Connection, mount_id: int, reason: JobReason) -> None:
    await conn.execute(_sql.want_audit, {"mount_id": mount_id, "reason": reason})


async def forget(conn: Connection, days: int) -> int:
    return (await conn.execute(_sql.forget, {"days": days})).rowcount
