"""What is known of the content at a path, in the few columns a comparison needs."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple, cast

from tristore.db.pool import Connection, Pool
from tristore.db.queries import load
from tristore.events.payloads import NodeKind, NodeState
from tristore.filestore.model import PRESENT

_sql = load("tristore.filestore", "known.sql")

PAGE = 5000


class Known(NamedTuple):
    id: int
    path: str
    kind: NodeKind
    state: NodeState
    size_bytes: int
    inode: int | None
    mtime_ns: int | None
    etag: str | None
    version: int
    journal_id: int

    @property
    def present(self) -> bool:
        return self.state in PRESENT


class Moment(NamedTuple):
    """A path as one moment shows it. Two equal moments mean that no command has ended between
    them, and if neither is claimed, that none has touched the content."""

    node: Known | None
    buried: int | None
    claimed: bool


async def between(
    pool: Pool, mount_id: int, after: str, through: str
) -> AsyncIterator[list[Known]]:
    """Pages of what is tracked behind `after` up to and with `through`."""
    given = {"mount_id": mount_id, "through": through, "limit": PAGE}
    async for page in _pages(pool, _sql.between, given, after):
        yield page


async def beyond(pool: Pool, mount_id: int, after: str, prefix: str) -> AsyncIterator[list[Known]]:
    """Pages of what is tracked behind `after` in the directory `prefix`."""
    # "0" is the character behind the slash.
    given = {"mount_id": mount_id, "below": f"{prefix}0" if prefix else "", "limit": PAGE}
    async for page in _pages(pool, _sql.beyond, given, after):
        yield page


async def _pages(
    pool: Pool, query: str, given: dict[str, Any], after: str
) -> AsyncIterator[list[Known]]:
    while True:
        async with pool.connection() as conn:
            cursor = conn.cursor(binary=True)
            await cursor.execute(query, {**given, "after": after})
            rows = cast(list[Any], await cursor.fetchall())
        page = [Known._make(row) for row in rows]
        if page:
            yield page
        if len(page) < PAGE:
            return
        after = page[-1].path


async def at(conn: Connection, mount_id: int, paths: Sequence[str]) -> dict[str, Moment]:
    cursor = conn.cursor(binary=True)
    await cursor.execute(_sql.at, {"mount_id": mount_id, "paths": list(paths)})
    return {row[0]: _moment(row[1:]) for row in cast(list[Any], await cursor.fetchall())}


def _moment(row: tuple[Any, ...]) -> Moment:
    node = None if row[0] is None else Known._make(row[:10])
    return Moment(node, row[10], row[11])
