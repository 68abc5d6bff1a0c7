"""The audit: every version of a record, who made it, and what was before."""

from typing import Any

import orjson

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import NotFound
from tristore.events.envelope import time_text
from tristore.metastore.changes import no_record
from tristore.metastore.content import Content

_sql = load("tristore.metastore", "audits.sql")

NEWEST = 2**31 - 1


async def page(
    conn: Connection, namespace: str, key: str, before: int, limit: int
) -> list[dict[str, Any]]:
    """Newest first. Of a record that was purged there are the facts without the content."""
    given = {"namespace": namespace, "key": key, "before": before, "limit": limit}
    rows: list[Any] = await (await conn.execute(_sql.page, given)).fetchall()
    if not rows:
        await _check_known(conn, namespace, key)
    return [_item(row) for row in rows]


async def content(conn: Connection, namespace: str, key: str, version: int) -> Content:
    given = {"namespace": namespace, "key": key, "version": version}
    row: Any = await (await conn.execute(_sql.content, given)).fetchone()
    if row is None:
        await _check_known(conn, namespace, key)
        raise NotFound(f"the record has no version {version}; GET …/audit lists them")
    metadata, tags, owner = row
    if metadata is None:
        raise NotFound(f"version {version} was purged, and its content with it")
    return Content(orjson.loads(metadata), tuple(tags), owner)


async def _check_known(conn: Connection, namespace: str, key: str) -> None:
    found = await conn.execute(_sql.known, {"namespace": namespace, "key": key})
    if await found.fetchone() != (True,):
        raise no_record()


def _item(row: tuple[Any, ...]) -> dict[str, Any]:
    version, action, metadata, tags, owner, deleted, changed, restored_from = row[:8]
    actor, correlation_id, at, before_version, *before = row[8:]
    return {
        "version": version,
        "action": action,
        "actor": actor,
        "at": time_text(at),
        "correlationId": correlation_id,
        "changed": changed,
        "restoredFrom": restored_from,
        "before": None if before_version is None else _state(*before),
        "after": _state(metadata, tags, owner, deleted),
    }


def _state(
    metadata: str | None, tags: list[str] | None, owner: str | None, deleted: bool
) -> dict[str, Any] | None:
    """None where the content was purged."""
    if metadata is None:
        return None
    return {"metadata": orjson.loads(metadata), "tags": tags, "owner": owner, "deleted": deleted}
