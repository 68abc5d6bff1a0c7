"""Import: what lies on a mount already becomes tracked, a chunk a transaction."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import orjson
import psycopg

from tristore.db.pool import Connection, Pool, spendable
from tristore.db.queries import load
from tristore.errors import ContentConflict, ContentGone, ContentUnreadable
from tristore.events.poke import Poke
from tristore.failpoints import failpoint
from tristore.filestore import changes, nodes, paths
from tristore.filestore.changes import Step
from tristore.filestore.chunk import Chunk, Found
from tristore.filestore.content import Blobs, Entry, Fingerprint
from tristore.filestore.differences import stat_all
from tristore.filestore.model import Caller, Mount
from tristore.filestore.progress import Progress
from tristore.filestore.walk import Comparison

_sql = load("tristore.filestore", "importing.sql")

# An event's payload may have 256 KiB.
_CHUNK_BYTES = 200 * 1024
# What an entry takes of it besides its path.
_COST = 220
_MOST_DIRECTORIES = 50_000
_TRIES = 3
_READS_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Importing:
    """What an import works with; `job_id` and `caller` say whose it is."""

    pool: Pool
    poke: Poke
    blobs: Blobs
    mount: Mount
    owner: UUID
    caller: Caller
    job_id: int
    chunk_nodes: int
    checksums: bool


class _Taken(Exception):
    """Paths of a chunk that cannot be tracked now."""

    def __init__(self, found: set[str]) -> None:
        self.paths = found


@dataclass(slots=True)
class Import:
    """Once over the mount; run again, it passes over what is tracked by then."""

    about: Importing
    progress: Progress
    # Tracked directories by path, as far as they were met.
    _directories: dict[str, int] = field(default_factory=dict)
    _deferred: set[str] = field(default_factory=set)
    # Directories of a store that has none, once they are tracked or about to be.
    _logical: set[str] = field(default_factory=set)

    async def run(self, prefix: str) -> None:
        await self._import_below(prefix)
        # What commands were at work on is tracked by now, but not all that lies in it.
        deferred, self._deferred = self._deferred, set()
        for path in sorted(deferred):
            await self._import_below(path)

    async def _import_below(self, prefix: str) -> None:
        """One chunk is written while the next is gathered; never two, since what lies in a
        directory needs its node."""
        writing = asyncio.ensure_future(self._import([]))
        try:
            async for chunk in self._chunks(prefix):
                await writing
                writing = asyncio.ensure_future(self._import(chunk))
            await writing
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)

    async def _chunks(self, prefix: str) -> AsyncIterator[list[Entry]]:
        chunk: list[Entry] = []
        size = 0
        async for entry in self._untracked(prefix):
            cost = len(orjson.dumps(entry.path)) + _COST
            if len(chunk) >= self.about.chunk_nodes or size + cost > _CHUNK_BYTES:
                yield chunk
                chunk, size = [], 0
            chunk.append(entry)
            size += cost
        yield chunk

    async def _untracked(self, prefix: str) -> AsyncIterator[Entry]:
        for entry in await self._on_the_way(prefix):
            yield entry
        about = self.about
        comparison = Comparison(about.pool, about.blobs, about.mount, prefix)
        async for stretch in comparison.stretches():
            self.progress.scan(stretch)
            await self.progress.show()
            found = [entry for entry, node in stretch.differing if entry and node is None]
            if not about.blobs.supports_directories:
                found = await self._with_directories(found)
            for entry in found:
                yield entry

    async def _with_directories(self, entries: Sequence[Entry]) -> list[Entry]:
        """A store without directories does not name them, but what lies in one needs its node."""
        places = {above for entry in entries for above in paths.parents(entry.path)}
        async with self.about.pool.connection() as conn:
            tracked = await nodes.at_paths(conn, self.about.mount, places - self._logical)
        self._logical |= tracked.keys()
        found = []
        for entry in entries:
            for above in paths.parents(entry.path):
                if above not in self._logical:
                    self._logical.add(above)
                    found.append(Entry(above, "directory", Fingerprint(0)))
            found.append(entry)
        return found

    async def _on_the_way(self, prefix: str) -> list[Entry]:
        """The directory itself and those above it, as far as they are not tracked."""
        if not prefix:
            return []
        way = [*paths.parents(prefix), prefix]
        entries = await stat_all(self.about.blobs, way)
        async with self.about.pool.connection() as conn:
            tracked = await nodes.at_paths(conn, self.about.mount, way)
        found = (entry for path, entry in entries.items() if path not in tracked)
        return [entry for entry in found if entry and entry.kind in ("file", "directory")]

    async def _import(self, entries: Sequence[Entry]) -> None:
        """What cannot be tracked now is left out, and tried again at the end."""
        left = list(entries)
        for _ in range(_TRIES):
            if not left:
                return
            try:
                return await self._write(left)
            except _Taken as taken:
                self._directories.clear()
                left = self._without(left, taken.paths)
            except psycopg.errors.UniqueViolation:  # somebody else has tracked some of it
                left = await self._still_untracked(left)
        self._without(left, {entry.path for entry in left})

    def _without(self, entries: Sequence[Entry], taken: set[str]) -> list[Entry]:
        kept = [e for e in entries if taken.isdisjoint((e.path, *paths.parents(e.path)))]
        self._deferred |= taken
        return kept

    async def _still_untracked(self, entries: Sequence[Entry]) -> list[Entry]:
        self._directories.clear()
        async with self.about.pool.connection() as conn:
            asked = [entry.path for entry in entries]
            tracked = await nodes.at_paths(conn, self.about.mount, asked)
        return [entry for entry in entries if entry.path not in tracked]

    async def _write(self, entries: Sequence[Entry]) -> None:
        about = self.about
        checksums = await self._checksums(entries)
        async with spendable(about.pool) as conn:
            await self._find_directories(conn, entries)
            # Statements that need no answer from one another share a round trip.
            async with conn.pipeline(), conn.transaction():
                journal_id, ids = await self._begin(conn, entries)
                found = self._found(entries, ids, checksums)
                chunk = Chunk(about.mount, journal_id, self._directories)
                made = chunk.changes(found, about.caller.principal)
                await changes.apply(conn, made, Step(owner=about.owner, caller=about.caller))
                await self._check(conn, entries)
            failpoint("filestore.import.after_chunk")
        about.poke()
        self.progress.imported += len(found)
        await self.progress.show()

    async def _begin(self, conn: Connection, entries: Sequence[Entry]) -> tuple[int, list[int]]:
        about = self.about
        given = {"mount_id": about.mount.id, "path": entries[0].path, "owner": about.owner}
        given |= {"principal": about.caller.principal, "job_id": about.job_id}
        given |= {"correlation_id": about.caller.correlation_id, "nodes": len(entries)}
        ((journal_id, ids),) = cast(Any, await (await conn.execute(_sql.begin, given)).fetchall())
        return journal_id, ids

    def _found(
        self, entries: Sequence[Entry], ids: Sequence[int], checksums: dict[str, str]
    ) -> list[Found]:
        """What lies in a directory that is not tracked has to wait for it."""
        found = []
        for node_id, entry in zip(ids, entries, strict=True):
            if paths.folder(entry.path) not in self._directories:
                raise _Taken({paths.folder(entry.path)})
            if entry.kind == "directory":
                self._directories[entry.path] = node_id
            found.append(Found(node_id, entry, checksums.get(entry.path)))
        return found

    async def _find_directories(self, conn: Connection, entries: Iterable[Entry]) -> None:
        if len(self._directories) > _MOST_DIRECTORIES:
            self._directories.clear()
        folders = {paths.folder(entry.path) for entry in entries}
        places = folders.union(*map(paths.parents, folders), {""})
        if unknown := places - self._directories.keys():
            tracked = await nodes.at_paths(conn, self.about.mount, unknown)
            self._directories |= {
                path: node.id
                for path, node in tracked.items()
                if node.present and node.kind == "directory"
            }

    async def _check(self, conn: Connection, entries: Sequence[Entry]) -> None:
        """The last question before the commit: whether commands left these paths alone."""
        made = {entry.path for entry in entries}
        folders = {paths.folder(path) for path in made} - made
        given: dict[str, Any] = {"mount_id": self.about.mount.id, "paths": list(made)}
        given |= {"directories": list(folders)}
        given |= {"ids": [self._directories[folder] for folder in folders]}
        await conn.execute(_sql.alone, given)
        rows = await (await conn.execute(_sql.taken, given)).fetchall()
        if rows:
            raise _Taken({str(row[0]) for row in rows})

    async def _checksums(self, entries: Sequence[Entry]) -> dict[str, str]:
        if not self.about.checksums:
            return {}
        gate = asyncio.Semaphore(_READS_AT_ONCE)

        async def one(path: str) -> tuple[str, str | None]:
            async with gate:
                try:
                    return path, (await self.about.blobs.checksum(path))[0]
                except (ContentConflict, ContentGone, ContentUnreadable):
                    return path, None

        files = [entry.path for entry in entries if entry.kind == "file"]
        found = await asyncio.gather(*map(one, files))
        return {path: checksum for path, checksum in found if checksum is not None}
