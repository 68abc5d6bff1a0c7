"""A mount and its nodes side by side, from the first path to the last, in constant memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from tristore.db.pool import Pool
from tristore.filestore import known, paths
from tristore.filestore.content import Blobs, Entry
from tristore.filestore.differences import difference
from tristore.filestore.known import Known
from tristore.filestore.model import Mount

Pair = tuple[Entry | None, Known | None]


@dataclass(slots=True)
class Stretch:
    """What one batch of the walk brought. `differing` pairs what lies there with what is known;
    they are suspects only, since both sides were read at their own time."""

    scanned: int = 0
    skipped: int = 0
    bytes: int = 0
    differing: list[Pair] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def differing_paths(self) -> list[str]:
        found = (entry or node for entry, node in self.differing)
        return [one.path for one in found if one is not None]


class Comparison:
    def __init__(self, pool: Pool, blobs: Blobs, mount: Mount, prefix: str) -> None:
        self._pool = pool
        self._blobs = blobs
        self._mount = mount
        self._prefix = prefix
        self._after = f"{prefix}/" if prefix else ""
        # Directories that could not be listed, of which nothing may be called missing, and those
        # that are gone or have become files: what they held is told with them.
        self._hidden: set[str] = set()

    async def stretches(self) -> AsyncIterator[Stretch]:
        async for entries in _ahead(self._blobs.walk(self._prefix)):
            found = Stretch()
            here = {entry.path: entry for entry in entries if self._counts(entry, found)}
            if here:
                async for earlier in self._compared(here, found):
                    yield earlier
            yield found
        async for page in known.beyond(self._pool, self._mount.id, self._after, self._prefix):
            yield Stretch(differing=[*self._pairs({}, page)])

    async def _compared(self, here: dict[str, Entry], found: Stretch) -> AsyncIterator[Stretch]:
        """Fills `found`; what many lost nodes brought before is told by itself."""
        through = next(reversed(here))
        async for page in known.between(self._pool, self._mount.id, self._after, through):
            found.differing += self._pairs(here, page)
            if len(page) == known.PAGE:
                yield Stretch(differing=found.differing)
                found.differing = []
        self._after = through
        found.differing += [(entry, None) for entry in here.values() if difference(entry, None)]

    def _pairs(self, here: dict[str, Entry], page: list[Known]) -> Iterator[Pair]:
        directories = self._blobs.supports_directories
        for node in page:
            entry = here.pop(node.path, None)
            if not difference(entry, node, directories):
                continue
            if entry is not None and node.kind == "directory":
                self._hidden.add(node.path)  # a file stands there now
            if entry is not None or not self._unseen(node):
                yield entry, node

    def _counts(self, entry: Entry, found: Stretch) -> bool:
        if entry.kind == "unreadable":
            self._hidden.add(entry.path)
            found.unreadable.append(entry.path)
            found.skipped += 1
            return False
        found.scanned += 1
        found.bytes += entry.fingerprint.size
        found.skipped += entry.kind == "other"
        # What is no text cannot be asked for, and no node has such a path.
        return paths.is_text(entry.path)

    def _unseen(self, node: Known) -> bool:
        """Whether what lies above an absent node says enough about it."""
        if self._hidden and any(above in self._hidden for above in paths.parents(node.path)):
            return True
        if node.kind == "directory":
            self._hidden.add(node.path)
        return False


async def _ahead(batches: AsyncIterator[list[Entry]]) -> AsyncIterator[list[Entry]]:
    """The next batch is read while the caller works on this one."""
    following = asyncio.ensure_future(anext(batches, None))
    try:
        while (batch := await following) is not None:
            following = asyncio.ensure_future(anext(batches, None))
            yield batch
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
