"""The journal: one entry a command, begun with its claims and ended with its changes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

import orjson
from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events.payloads import Command
from tristore.filestore import claims
from tristore.filestore.claims import Want
from tristore.filestore.model import Caller, Entry, Mount, Node

_sql = load("tristore.filestore", "journal.sql")

Status = Literal["begun", "blocked", "changed", "refused", "known"]
Place = tuple[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A command about to begin. `plan` is what recovery needs besides the nodes; its `token`
    tells the entries a process works on from those it lost sight of."""

    command: Command
    mount: Mount
    path: str
    caller: Caller
    owner: UUID | None
    wanted: Sequence[Want]
    plan: dict[str, Any]
    target_mount: Mount | None = None
    target_path: str | None = None
    request_hash: bytes | None = None

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "command": self.command,
            "mount_id": self.mount.id,
            "path": self.path,
            "plan": self.plan | {"source": self.caller.source},
            "owner": self.owner,
            "principal": self.caller.principal,
            "token_id": self.caller.token_id,
            "idempotency_key": self.caller.idempotency_key,
            "correlation_id": self.caller.correlation_id,
        }
        if self.target_path is not None:
            target = self.target_mount or self.mount
            entry |= {"target_mount_id": target.id, "target_path": self.target_path}
        if self.request_hash is not None:
            entry["request_hash"] = f"\\x{self.request_hash.hex()}"
        return entry


@dataclass(frozen=True, slots=True)
class Begun:
    """What came of an intent. `nodes` are those at and above the wanted paths; `fresh` are ids
    for places that have none. Only with status `begun` do the entry and its claims exist."""

    status: Status
    journal_id: int
    nodes: dict[Place, Node] = field(default_factory=dict)
    fresh: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Known:
    """The entry an Idempotency-Key belongs to."""

    id: int
    state: Literal["applying", "completed", "failed"]
    request_hash: bytes | None
    result: dict[str, Any] | None
    error: str | None


@dataclass(frozen=True, slots=True)
class OpenEntry:
    """An entry that is still applying, with all that recovery knows of it."""

    id: int
    command: Command
    mount_id: int
    path: str
    target_mount_id: int | None
    target_path: str | None
    plan: dict[str, Any]
    progress: dict[str, Any]
    owner: UUID | None
    principal: str | None
    token_id: UUID | None
    idempotency_key: str | None
    correlation_id: str | None
    bytes: int
    nodes_affected: int
    started_at: datetime

    def caller(self) -> Caller:
        return Caller(
            principal=self.principal,
            token_id=self.token_id,
            correlation_id=self.correlation_id,
            source=self.plan.get("source", "filestore.api"),
            idempotency_key=self.idempotency_key,
        )


async def begin(conn: Connection, intent: Intent, mounts: dict[int, str]) -> Begun:
    """One statement; by itself it is the command's first commit. `mounts`: names by id."""
    return (await begin_all(conn, [intent], mounts))[0]


async def begin_all(
    conn: Connection, intents: Sequence[Intent], mounts: dict[int, str]
) -> list[Begun]:
    """The same for several commands, which begin with one commit."""
    given = orjson.dumps([_asked(intent) for intent in intents]).decode()
    rows = await (await conn.execute(_sql.begin, {"intents": given}, prepare=True)).fetchall()
    return [_begun(cast(Any, row), mounts) for row in rows]


def _asked(intent: Intent) -> dict[str, Any]:
    return {
        "entry": intent.to_json(),
        "wanted": [want.to_json() for want in intent.wanted],
        "above": claims.over(intent.wanted),
    }


def _begun(row: tuple[Status, int, str | None, list[int] | None], mounts: dict[int, str]) -> Begun:
    status, journal_id, found, fresh = row
    nodes = [_node(values, mounts) for values in orjson.loads(found)] if found else []
    return Begun(status, journal_id, {(n.mount_id, n.path): n for n in nodes}, fresh or [])


def _node(values: list[Any], mounts: dict[int, str]) -> Node:
    id, mount_id, *rest, created_at, updated_at = values
    created, updated = map(datetime.fromisoformat, (created_at, updated_at))
    return Node(*(id, mount_id, mounts[mount_id], *rest, created, updated))


def request_hash(*parts: object) -> bytes:
    """What makes two requests with one Idempotency-Key the same."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).digest()


async def known(conn: Connection, journal_id: int) -> Known | None:
    cursor = conn.cursor(row_factory=class_row(Known))
    return await (await cursor.execute(_sql.known, {"id": journal_id})).fetchone()


async def by_key(conn: Connection, caller: Caller) -> Known | None:
    cursor = conn.cursor(row_factory=class_row(Known))
    given = {"token_id": caller.token_id, "key": caller.idempotency_key}
    return await (await cursor.execute(_sql.by_key, given)).fetchone()


async def entry(conn: Connection, journal_id: int, mounts: list[str] | None) -> Entry | None:
    """An entry in any state; one that touches a mount outside the allow-list is not there."""
    cursor = conn.cursor(row_factory=class_row(Entry))
    given = {"id": journal_id, "mounts": mounts}
    return await (await cursor.execute(_sql.entry, given)).fetchone()


async def open_entries(conn: Connection, ids: Sequence[int]) -> list[OpenEntry]:
    cursor = conn.cursor(row_factory=class_row(OpenEntry))
    return await (await cursor.execute(_sql.open_entries, {"ids": list(ids)})).fetchall()


async def is_open(conn: Connection, journal_id: int, owner: UUID) -> bool:
    given = {"id": journal_id, "owner": owner}
    return await (await conn.execute(_sql.is_open, given)).fetchone() is not None


async def take(conn: Connection, journal_id: int, before: UUID | None, owner: UUID | None) -> bool:
    """Makes an entry one's own, or nobody's, unless another was quicker."""
    given = {"id": journal_id, "before": before, "owner": owner}
    return (await conn.execute(_sql.take, given)).rowcount == 1
