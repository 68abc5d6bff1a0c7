"""The doctor: adds all rollups up anew from the nodes, compares, and repairs where asked."""

from dataclasses import dataclass
from typing import Any, cast

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.filestore.model import Mount, Rollup

_sql = load("tristore.filestore", "rollups.sql")


@dataclass(frozen=True, slots=True)
class Finding:
    """A directory whose sums are not what lies under it; the empty path is the mount's root."""

    node_id: int
    path: str
    kept: Rollup
    counted: Rollup

    def to_json(self) -> dict[str, Any]:
        return {
            "nodeId": str(self.node_id),
            "path": self.path,
            "kept": self.kept.to_json(),
            "counted": self.counted.to_json(),
        }


async def examine(pool: Pool, mount: Mount, *, repair: bool = False) -> list[Finding]:
    """What is wrong with a mount's rollups. While they are repaired commands wait."""
    async with pool.connection() as conn, conn.transaction():
        if repair:
            # A lock of its own statement: what is read next sees all that was committed before.
            await conn.execute(_sql.still)
        found = await _compare(conn, mount)
        if repair and found:
            await _rewrite(conn, found)
    return found


async def _compare(conn: Connection, mount: Mount) -> list[Finding]:
    # One statement, so one snapshot: sums and nodes are of the same moment.
    rows = await (await conn.execute(_sql.compare, {"mount_id": mount.id})).fetchall()
    return [
        Finding(row[0], row[1], Rollup(*row[2:5]), Rollup(*row[5:8])) for row in cast(Any, rows)
    ]


async def _rewrite(conn: Connection, found: list[Finding]) -> None:
    given = {
        "ids": [one.node_id for one in found],
        "sizes": [one.counted.size_bytes for one in found],
        "files": [one.counted.files for one in found],
        "directories": [one.counted.directories for one in found],
    }
    await conn.execute(_sql.rewrite, given)
