"""Notices by watchfiles, for systems without inotify.

It does not tell when the system dropped events, so there the audits alone find what was lost.
"""

import asyncio
import os
from collections.abc import AsyncGenerator

from watchfiles import Change, awatch

from tristore.filestore import paths
from tristore.filestore.hints import GATHER_SECONDS, Hints, Notices

_STEP_MS = int(GATHER_SECONDS * 1000)


class WatchfilesNotices(Notices):
    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._stop = asyncio.Event()
        self._changes: AsyncGenerator[set[tuple[Change, str]], None] | None = None

    async def open(self) -> None:
        self._changes = awatch(
            self._root,
            watch_filter=self._passes,
            step=_STEP_MS,
            debounce=_STEP_MS * 4,
            stop_event=self._stop,
            yield_on_timeout=True,
            rust_timeout=_STEP_MS,
            ignore_permission_denied=True,
        )
        await anext(self._changes)  # the watch stands once the first wait is over

    async def close(self) -> None:
        self._stop.set()
        if self._changes is not None:
            await self._changes.aclose()

    async def next(self) -> Hints:
        assert self._changes is not None
        found: set[str] = set()
        while not found:
            try:
                changes = await anext(self._changes)
            except (RuntimeError, StopAsyncIteration):
                return Hints(set(), "gone")
            for change, path in changes:
                found |= await asyncio.to_thread(self._named, change, path)
        return Hints(found)

    def _passes(self, change: Change, path: str) -> bool:
        del change
        return os.path.relpath(path, self._root).split("/", 1)[0] not in (paths.RESERVED, ".")

    def _named(self, change: Change, path: str) -> set[str]:
        """What came into a new directory before it was watched made no event."""
        found = {os.path.relpath(path, self._root)}
        if change == Change.added and os.path.isdir(path) and not os.path.islink(path):
            for directory, directories, files in os.walk(path):
                start = os.path.relpath(directory, self._root)
                found |= {f"{start}/{name}" for name in (*directories, *files)}
        return {one for one in found if all(map(paths.trackable, one.split("/")))}
