"""The listing of a bucket as a walk: only objects that have a path, each once, in order."""

import asyncio
from collections.abc import AsyncGenerator

from tristore.filestore import paths
from tristore.filestore.bucket import Bucket
from tristore.filestore.content import Entry, EntryKind, Fingerprint

BATCH = 1000
_AT_ONCE = 16


class Listing:
    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    async def walk(self, prefix: str, after: str | None) -> AsyncGenerator[list[Entry], None]:
        last = after or ""
        async for page in self._bucket.pages(prefix, after, BATCH):
            entries = []
            for entry in await self._objects(page):
                # A folder's marker may stand behind an object of its name: one path, told once.
                if entry.path > last:
                    entries.append(entry)
                    last = entry.path
            if entries:
                yield entries

    async def one(self, path: str) -> AsyncGenerator[list[Entry], None]:
        folders, page = await self._bucket.children(path)
        found = {folder: Entry(folder, "directory", Fingerprint(0)) for folder in folders}
        found |= {entry.path: entry for entry in await self._objects(page)}
        found.pop(paths.RESERVED, None)
        entries = [found[path] for path in sorted(found)]
        for start in range(0, len(entries), BATCH):
            yield entries[start : start + BATCH]

    async def _objects(self, page: list[tuple[str, Fingerprint]]) -> list[Entry]:
        ours = [item for item in page if item[0].split("/", 1)[0] != paths.RESERVED]
        markers = await self._markers([path for path, looks in ours if looks.size == 0])
        return [Entry(path, _kind(path), looks) for path, looks in ours if path not in markers]

    async def _markers(self, empty: list[str]) -> set[str]:
        """An empty `a/` that some tools keep for a folder is listed as `a`; there is no `a`."""
        limit = asyncio.Semaphore(_AT_ONCE)

        async def absent(path: str) -> bool:
            async with limit:
                return await self._bucket.head(path) is None

        gone = await asyncio.gather(*map(absent, empty))
        return {path for path, is_gone in zip(empty, gone, strict=True) if is_gone}


def _kind(path: str) -> EntryKind:
    return "file" if all(map(paths.trackable, path.split("/"))) else "other"
