"""Paths that were hinted at a short while ago, in case their directory gets another name."""

import time
from collections.abc import Iterable

from tristore.filestore import paths

# Longer than a hint waits for its look, and what it finds to be settled.
_KEEP_SECONDS = 30.0
# All are gone through for each directory that is renamed.
_MOST = 10_000


class Recent:
    def __init__(self) -> None:
        self._at: dict[str, float] = {}

    def add(self, found: Iterable[str]) -> None:
        now = time.monotonic()
        for path in found:
            self._at.pop(path, None)
            self._at[path] = now
        self._forget(now - _KEEP_SECONDS)

    def _forget(self, before: float) -> None:
        """The oldest stand first."""
        while self._at:
            path = next(iter(self._at))
            if len(self._at) <= _MOST and self._at[path] >= before:
                return
            del self._at[path]

    def under(self, directory: str) -> list[str]:
        return [path for path in self._at if paths.within(path, directory) and path != directory]
