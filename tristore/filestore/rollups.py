"""Rollups: what lies under each directory, kept as partial sums by slot (docs/decisions/0009)."""

from collections.abc import Sequence
from typing import Any, cast

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.filestore.model import Rollup

_sql = load("tristore.filestore", "rollups.sql")


async def of(conn: Connection, node_ids: Sequence[int]) -> dict[int, Rollup]:
    """The sums of these directories; one with nothing under it has zeros."""
    if not node_ids:
        return {}
    rows = await (await conn.execute(_sql.of, {"ids": list(node_ids)})).fetchall()
    found = {node_id: Rollup(*sums) for node_id, *sums in cast(Any, rows)}
    return {node_id: found.get(node_id, Rollup()) for node_id in node_ids}


async def forget(conn: Connection, node_ids: Sequence[int]) -> None:
    await conn.execute(_sql.forget, {"ids": list(node_ids)})
