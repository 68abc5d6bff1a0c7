"""The walk through a folder, in the order in which the database sorts paths."""

import os
from collections import deque
from collections.abc import Generator
from itertools import islice

from tristore.filestore import paths
from tristore.filestore.beneath import Beneath
from tristore.filestore.content import Entry
from tristore.filestore.looks import UNKNOWN, absent, entry, look

BATCH = 1000


class Tree:
    """A walk below one directory, resumed behind `after`; made and used in one thread at a time.

    The names of a directory are sorted with the content of its subdirectories standing as
    `name/` among them: "a", "a-b", "a/" is the order of the full paths "a", "a-b", "a/x".
    """

    def __init__(self, beneath: Beneath, path: str, after: str | None, *, deep: bool) -> None:
        self._beneath = beneath
        self._after = after or ""
        self._deep = deep
        self._entries = self._walk(path)

    def batch(self) -> list[Entry]:
        return list(islice(self._entries, BATCH))

    def close(self) -> None:
        self._entries.close()

    def _walk(self, top: str) -> Generator[Entry, None, None]:
        # The directories that are open, each with the names still to come.
        above = [(top, deque(self._names(top)))]
        while above:
            path, names = above[-1]
            if not names:
                above.pop()
            elif not names[0].endswith("/"):
                yield from self._look_at(path, names)
            elif self._wanted(inside := _join(path, names.popleft())):
                yield from self._enter(inside[:-1], above)

    def _enter(
        self, path: str, above: list[tuple[str, deque[str]]]
    ) -> Generator[Entry, None, None]:
        try:
            above.append((path, deque(self._names(path))))
        except OSError:
            yield Entry(path, "unreadable", UNKNOWN)

    def _names(self, path: str) -> list[str]:
        """A directory may vanish while it is walked; a mount's own root may not be unreadable."""
        names: list[str] = []
        try:
            with self._beneath.directory(path) as fd, os.scandir(fd) as found:
                for item in found:
                    names += self._stations(path, item)
        except OSError as error:
            if not absent(error):
                raise
        return sorted(names)

    def _stations(self, path: str, item: "os.DirEntry[str]") -> list[str]:
        name = item.name
        if not path and name == paths.RESERVED:
            return []
        if self._deep and item.is_dir(follow_symlinks=False) and _trackable(path, name):
            return [name, f"{name}/"]
        return [name]

    def _look_at(self, path: str, names: deque[str]) -> Generator[Entry, None, None]:
        """The entries up to the next subdirectory to enter, with the directory opened once."""
        found: list[Entry] = []
        try:
            with self._beneath.directory(path) as fd:
                while names and not names[0].endswith("/") and len(found) < BATCH:
                    found += self._seen(fd, path, names.popleft())
        except OSError as error:
            names.clear()
            if not absent(error):
                found.append(Entry(path, "unreadable", UNKNOWN))
        yield from found

    def _seen(self, fd: int, path: str, name: str) -> list[Entry]:
        full = _join(path, name)
        if full <= self._after:
            return []
        try:
            seen = entry(full, look(fd, name))
        except FileNotFoundError:
            return []
        return [seen if _trackable(path, name) else seen._replace(kind="other")]

    def _wanted(self, inside: str) -> bool:
        """Whether anything in the directory, named with its slash, can come behind `after`."""
        return inside > self._after or self._after.startswith(inside)


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _trackable(path: str, name: str) -> bool:
    if not paths.trackable(name):
        return False
    full = _join(path, name)
    # Only a long one is worth counting in bytes.
    return len(full) <= paths.MAX_PATH_BYTES // 4 or len(full.encode()) <= paths.MAX_PATH_BYTES
