"""Nodes: reading the tracked tree, by id, by path and in pages."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import orjson
from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidQuery
from tristore.events.payloads import NodeKind, NodeState
from tristore.filestore.model import Mount, Node, Snapshot

_sql = load("tristore.filestore", "nodes.sql")

# Behind every path that can be.
_LAST = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Selection:
    """The nodes anywhere under a directory (empty: the whole mount); None does not narrow.
    Deleted nodes are found only by their state."""

    mount: Mount
    prefix: str = ""
    state: NodeState | None = None
    kind: NodeKind | None = None


async def by_id(conn: Connection, node_id: int) -> Node | None:
    cursor = conn.cursor(row_factory=class_row(Node))
    return await (await cursor.execute(_sql.by_id, {"id": node_id})).fetchone()


async def by_path(conn: Connection, mount: Mount, path: str) -> Node | None:
    cursor = conn.cursor(row_factory=class_row(Node))
    given = {"mount": mount.name, "mount_id": mount.id, "path": path}
    return await (await cursor.execute(_sql.by_path, given)).fetchone()


async def at_paths(conn: Connection, mount: Mount, asked: Iterable[str]) -> dict[str, Node]:
    cursor = conn.cursor(row_factory=class_row(Node))
    given = {"mount": mount.name, "mount_id": mount.id, "paths": list(asked)}
    return {
        node.path: node for node in await (await cursor.execute(_sql.at_paths, given)).fetchall()
    }


async def children(
    conn: Connection, node_id: int, limit: int, cursor: str | None
) -> tuple[list[Node], str | None]:
    (after,) = _read_cursor(cursor, "")
    rows = conn.cursor(row_factory=class_row(Node))
    given = {"id": node_id, "after": after, "limit": limit + 1}
    found = await (await rows.execute(_sql.children, given)).fetchall()
    page = found[:limit]
    return page, _write_cursor(page[-1].name) if len(found) > limit else None


async def page(
    conn: Connection, chosen: Selection, limit: int, cursor: str | None
) -> tuple[list[Node], str | None]:
    """In the order of paths."""
    after, after_id = _read_cursor(cursor, "", 0)
    first = f"{chosen.prefix}/" if chosen.prefix else ""
    given: dict[str, Any] = {
        "mount": chosen.mount.name,
        "mount_id": chosen.mount.id,
        "after": max(after, first),
        "after_id": after_id if after >= first else 0,
        "below": f"{chosen.prefix}0" if chosen.prefix else _LAST,
        "state": chosen.state,
        "kind": chosen.kind,
        "limit": limit + 1,
    }
    rows = conn.cursor(row_factory=class_row(Node))
    found = await (await rows.execute(_query(chosen), given)).fetchall()
    shown = found[:limit]
    more = len(found) > limit
    return shown, _write_cursor(shown[-1].path, shown[-1].id) if more else None


def _query(chosen: Selection) -> Any:
    if chosen.state == "deleted":
        return _sql.within_deleted
    if chosen.state in ("missing", "inconsistent"):
        return _sql.within_state
    if chosen.kind is not None:
        return _sql.within_kind
    return _sql.within_state if chosen.state else _sql.within


async def tree(conn: Connection, top: Node, mount: Mount, after: str, limit: int) -> list[Node]:
    """The next nodes under a directory behind `after`, in the order of paths."""
    chosen = Selection(mount, top.path)
    found, _ = await page(conn, chosen, limit, _write_cursor(after, 0) if after else None)
    return found


async def longer(conn: Connection, mount: Mount, directory: str, most: int) -> bool:
    """Whether something under a directory has a path of more than `most` bytes."""
    given: dict[str, Any] = {"mount_id": mount.id, "bytes": most}
    given |= {"after": f"{directory}/", "below": f"{directory}0"}
    return await (await conn.execute(_sql.longer, given)).fetchone() is not None


async def history(
    conn: Connection, node_id: int, limit: int, cursor: str | None
) -> tuple[list[Snapshot], str | None]:
    (before,) = _read_cursor(cursor, 2**31 - 1)
    rows = conn.cursor(row_factory=class_row(Snapshot))
    given = {"id": node_id, "before": before, "limit": limit + 1}
    found = await (await rows.execute(_sql.history, given)).fetchall()
    shown = found[:limit]
    return shown, _write_cursor(shown[-1].version) if len(found) > limit else None


async def fresh_ids(conn: Connection, count: int) -> list[int]:
    """Ids for nodes about to be made."""
    rows = await (await conn.execute(_sql.fresh_ids, {"count": count})).fetchall()
    return [cast(int, row[0]) for row in rows]


def _write_cursor(*position: str | int) -> str:
    return urlsafe_b64encode(orjson.dumps(position)).decode().rstrip("=")


def _read_cursor(text: str | None, *default: str | int) -> Any:
    """A position of the kind of `default`, which is where a list begins."""
    if text is None:
        return default
    try:
        position = orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        position = None
    if not _alike(position, default):
        raise InvalidQuery("that cursor was not made for this list; start without one")
    return position


def _alike(position: object, default: tuple[str | int, ...]) -> bool:
    if not isinstance(position, list) or len(position) != len(default):
        return False
    pairs = zip(position, default, strict=True)
    return all(type(a) is type(b) and _storable(a) for a, b in pairs)


def _storable(value: object) -> bool:
    if isinstance(value, int):
        return -(2**31) <= value < 2**31 if value < 0 else value < 2**63
    return "\x00" not in str(value)
