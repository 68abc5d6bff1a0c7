"""Queries: what callers can read of the filestore, each within the mounts they may see."""

from collections.abc import Sequence
from typing import Any

from tristore.config import Settings
from tristore.db.deadline import connection_within
from tristore.db.pool import Pool
from tristore.errors import NotFound
from tristore.events.payloads import NodeKind, NodeState
from tristore.filestore import feed, journal, mounts, nodes, rollups
from tristore.filestore.blobs import open_blobs
from tristore.filestore.model import Caller, Entry, Mount, Node, Rollup, Snapshot
from tristore.filestore.nodes import Selection
from tristore.filestore.opened import Opened
from tristore.filestore.work import now

# A list that is narrowed by kind may have to pass over many rows.
_LIST_SECONDS = 5.0


class Queries:
    def __init__(self, settings: Settings, pool: Pool, opened: Opened) -> None:
        self._settings = settings
        self._pool = pool
        self._opened = opened

    async def create_mount(self, caller: Caller, spec: dict[str, Any]) -> Mount:
        """Makes a folder or bucket a mount, once it has shown that it can keep the promises."""
        columns = mounts.described(spec)
        made_by = caller.principal or caller.source
        trial = Mount(
            id=0,
            **columns,
            last_audit_at=None,
            degraded=None,
            created_at=now(),
            created_by=made_by,
        )
        blobs = await open_blobs(trial, self._settings)
        try:
            # Before the probe writes: a folder that is refused stays as it was.
            async with self._pool.connection() as conn:
                await mounts.check_free(conn, columns, caller)
            await blobs.probe()
            empty = not await anext(blobs.list_directory(), [])
        finally:
            await blobs.aclose()
        async with self._pool.connection() as conn, conn.transaction():
            made = await mounts.create(conn, columns, caller, empty=empty)
        await self._opened.refresh()
        return made

    async def mounts(self, caller: Caller) -> list[Mount]:
        """In the order of names."""
        return [mount for mount in await self._opened.refresh() if caller.sees(mount.name)]

    async def mount(self, caller: Caller, name: str) -> Mount:
        return await self._opened.mount(caller, name)

    async def node(self, caller: Caller, node_id: int) -> Node:
        """Also a deleted one."""
        async with self._pool.connection() as conn:
            node = await nodes.by_id(conn, node_id)
        if node is None or not caller.sees(node.mount):
            raise NotFound(f"there is no node {node_id}")
        return node

    async def by_path(self, caller: Caller, mount: str, path: str) -> Node:
        """What stands at a path now; the empty path is the root."""
        at = await self._opened.mount(caller, mount)
        async with self._pool.connection() as conn:
            node = await nodes.by_path(conn, at, path)
        if node is None:
            raise NotFound(f"there is nothing at {path}")
        return node

    async def children(
        self, caller: Caller, node_id: int, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Node], str | None]:
        await self.node(caller, node_id)
        async with self._pool.connection() as conn:
            return await nodes.children(conn, node_id, limit, cursor)

    async def nodes(
        self,
        caller: Caller,
        mount: str,
        prefix: str = "",
        state: NodeState | None = None,
        kind: NodeKind | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[list[Node], str | None]:
        """Everything anywhere under the directory `prefix`, in the order of paths."""
        chosen = Selection(await self._opened.mount(caller, mount), prefix, state, kind)
        async with connection_within(self._pool, _LIST_SECONDS) as conn:
            return await nodes.page(conn, chosen, limit, cursor)

    async def history(
        self, caller: Caller, node_id: int, limit: int = 100, cursor: str | None = None
    ) -> tuple[list[Snapshot], str | None]:
        """The node's versions, the newest first; those it had on mounts the caller may not see
        are not told."""
        await self.node(caller, node_id)
        async with self._pool.connection() as conn:
            found, following = await nodes.history(conn, node_id, limit, cursor)
        return [version for version in found if caller.sees(version.mount)], following

    async def rollup(self, node_id: int) -> Rollup:
        return (await self.rollups([node_id]))[node_id]

    async def rollups(self, node_ids: Sequence[int]) -> dict[int, Rollup]:
        async with self._pool.connection() as conn:
            return await rollups.of(conn, node_ids)

    async def journal(self, caller: Caller, after: int = 0, limit: int = 100) -> list[Entry]:
        """Finished entries in the order of their ids; none appears later before one told here."""
        return await feed.page(self._pool, after, limit, caller.mounts)

    async def entry(self, caller: Caller, journal_id: int) -> Entry:
        """In any state, with its progress."""
        async with self._pool.connection() as conn:
            found = await journal.entry(conn, journal_id, caller.mounts)
        if found is None:
            raise NotFound(f"there is no journal entry {journal_id}")
        return found
