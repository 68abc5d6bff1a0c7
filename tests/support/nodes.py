"""Tells of nodes as the filestore does, and asks what their records say."""

from collections.abc import Iterable
from typing import Any

import psycopg

from tests.support.database import dead_letters, rows, value
from tests.support.waiting import until
from tristore.config import MetastoreSettings
from tristore.db.pool import make_pool
from tristore.db.wakeups import LOG, OUTBOX
from tristore.events import outbox
from tristore.events.payload import Payload
from tristore.events.payloads import (
    FilestoreNodeCopied,
    FilestoreNodeCreated,
    FilestoreNodeDeleted,
    FilestoreNodeMissing,
    FilestoreNodeMoved,
    FilestoreNodesImported,
    FilestoreNodeUpdated,
    ImportedNode,
)
from tristore.metastore.applying import API, Applying
from tristore.metastore.changes import Author, Change
from tristore.metastore.hooks import Hooks
from tristore.metastore.rules import Rulebook

NAMESPACE = "filestore"
_COMMANDS: dict[type[Payload], str] = {
    FilestoreNodeCreated: "put",
    FilestoreNodeUpdated: "put",
    FilestoreNodeMoved: "move",
    FilestoreNodeCopied: "copy",
    FilestoreNodeDeleted: "delete",
}


def checksum(version: int) -> str:
    return f"sha256:{version:064x}"


def told(kind: type[Any], node: str, version: int, **changes: Any) -> Payload:
    """One event of a file; what a test does not care about is filled in."""
    given: dict[str, Any] = {"node_id": node, "mount": "m", "path": f"in/{node}", "kind": "file"}
    given |= {"version": version, "size_bytes": 10 * version, "size_delta": 10}
    given |= {"state": "active", "journal_id": 100 + version, "checksum": checksum(version)}
    if kind in _COMMANDS:
        given["command"] = _COMMANDS[kind]
    else:
        missing = kind is FilestoreNodeMissing
        given |= {"outcome": "missing" if missing else "restored", "reason": "audit"}
        given |= {"state": "missing"} if missing else {}
    if kind is FilestoreNodeDeleted:
        given["state"] = "deleted"
    made: Payload = kind(**{**given, **changes})
    return made


def imported(nodes: Iterable[str], version: int = 1) -> Payload:
    listed = tuple(
        ImportedNode(node_id=n, path=f"old/{n}", kind="file", version=version, size_bytes=5)
        for n in nodes
    )
    return FilestoreNodesImported(mount="m", journal_id=7, size_delta=5, nodes=listed)


def view(node: str, version: int, **changes: Any) -> dict[str, Any]:
    """The object that a record carries after `told(…)` with the same arguments."""
    found = {"nodeId": node, "mount": "m", "path": f"in/{node}", "kind": "file"}
    found |= {"sizeBytes": 10 * version, "checksum": checksum(version), "state": "active"}  # type: ignore[dict-item]
    return {**found, "version": version, "journalId": 100 + version, **changes}


async def tell(database_url: str, *payloads: Payload, correlation_id: str | None = None) -> None:
    """Commits the events to the outbox, as the filestore's commands do."""
    async with make_pool(database_url, name="test", max_size=1) as pool, pool.connection() as conn:
        async with conn.transaction():
            given = [(payload, correlation_id) for payload in payloads]
            await outbox.add_many(conn, given, source="filestore.api")
        await conn.execute("SELECT pg_notify(%s, '')", [OUTBOX])


async def change(database_url: str, *changes: Change) -> None:
    """Changes records as a person does over HTTP."""
    applying = Applying(Rulebook(MetastoreSettings()), Hooks())
    async with make_pool(database_url, name="test", max_size=1) as pool, pool.connection() as conn:
        for each in changes:
            async with conn.transaction():
                await applying.one(conn, Author("ann", "by-hand"), each, API)


QUIET = """
    SELECT NOT EXISTS (SELECT FROM bus.outbox WHERE state <> 'done')
        AND NOT EXISTS (SELECT FROM metastore.sync_rebuilds WHERE finished_at IS NULL)
        AND c.sequence = h.last
    FROM bus.cursors c, bus.ingress_head h WHERE c.consumer = 'tristore.metastore.sync'
"""


async def settled(database_url: str, seconds: float = 60) -> None:
    """Everything told is in the log, and everything in the log is applied."""
    # Not the blocking driver: the parts may be tasks of the very loop that waits here.
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:

        async def quiet() -> bool:
            return await (await conn.execute(QUIET)).fetchone() == (True,)

        await until(quiet, seconds)
    assert dead_letters(database_url) == []


def records(database_url: str, namespace: str = NAMESPACE) -> dict[str, dict[str, Any]]:
    """All that may not differ between two ways to the same state."""
    query = """
        SELECT key, metadata, tags, owner, version, deleted_at IS NOT NULL AS deleted
        FROM metastore.records WHERE namespace = %s
    """
    return {row.pop("key"): row for row in rows(database_url, query, namespace)}


def audits(database_url: str) -> int:
    return int(value(database_url, "SELECT count(*) FROM metastore.record_audits"))


def run(url: str, statement: str, *params: Any) -> None:
    """Does to the database what the platform would not."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute(statement, params)


async def rebuilt(url: str) -> dict[str, Any]:
    """Asks for a rebuild, as the route does, and gives back what it came to."""
    run(
        url,
        "INSERT INTO metastore.sync_rebuilds "
        "(namespace, requested_by, epoch, first_sequence, sequence, target) "
        "SELECT %s, 'test', epoch, earliest - 1, earliest - 1, last FROM bus.ingress_head",
        NAMESPACE,
    )
    run(url, "SELECT pg_notify(%s, '')", LOG)
    await settled(url)
    (found,) = rows(url, "SELECT * FROM metastore.sync_rebuilds ORDER BY id DESC LIMIT 1")
    assert found["error"] is None
    return found
