"""Notices by Linux's inotify, one watch a directory, read on the event loop."""

import asyncio
import ctypes
import errno
import os
import struct

from tristore.failpoints import failpoint
from tristore.filestore import paths
from tristore.filestore.hints import GATHER_SECONDS, Hints, Loss, Notices
from tristore.filestore.recent import Recent

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT = 0x400, 0x800, 0x2000
_OVERFLOW, _IGNORED, _IS_DIRECTORY = 0x4000, 0x8000, 0x40000000
_ONLY_DIRECTORY, _NO_FOLLOW, _NO_UNLINKED = 0x01000000, 0x02000000, 0x04000000
_WANTED = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_HOW = _ONLY_DIRECTORY | _NO_FOLLOW | _NO_UNLINKED
_ROOT_GONE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT
_EVENT = struct.Struct("iIII")
_BUFFER = 256 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


class InotifyNotices(Notices):
    def __init__(self, root: str) -> None:
        self._root = root
        self._fd = -1
        self._directories: dict[int, str] = {}
        # Directories on the way from one name to another, by the number both notices carry.
        self._leaving: dict[int, tuple[str, dict[int, str]]] = {}
        self._unwatched: set[str] = set()
        self._paths: set[str] = set()
        self._recent = Recent()
        self._new: list[str] = []
        self._lost: Loss | None = None
        self._something = asyncio.Event()

    @property
    def whole(self) -> bool:
        return not self._unwatched

    async def open(self) -> None:
        self._fd = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            self._watch("", _ROOT_GONE)
            await asyncio.to_thread(self._watch_below, "")
        except BaseException:
            await self.close()
            raise
        asyncio.get_running_loop().add_reader(self._fd, self._read)
        if self._unwatched:
            self._lose("exhausted")

    async def close(self) -> None:
        if self._fd >= 0:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    async def next(self) -> Hints:
        await self._something.wait()
        await asyncio.sleep(GATHER_SECONDS)
        self._something.clear()
        found, new, lost = self._paths, self._new, self._lost
        self._paths, self._new, self._lost = set(), [], None
        self._recent.add(found)
        self._unwatch_gone()
        for directory in new:
            found |= await asyncio.to_thread(self._watch_below, directory)
        if self._unwatched and new and lost is None:
            lost = "exhausted"
        return Hints(found, lost)

    def _watch_below(self, start: str) -> set[str]:
        """Watches the directories under `start` and names all that lies there: what came before
        its watch was set made no event."""
        found: set[str] = set()
        waiting = [start]
        while waiting:
            directory = waiting.pop()
            for path, is_directory in self._listed(directory):
                found.add(path)
                if is_directory and self._watch(path):
                    waiting.append(path)
        return found

    def _listed(self, directory: str) -> list[tuple[str, bool]]:
        try:
            with os.scandir(os.path.join(self._root, directory)) as entries:
                return [
                    (_below(directory, entry.name), entry.is_dir(follow_symlinks=False))
                    for entry in entries
                    if _wanted(directory, entry.name)
                ]
        except OSError:
            return []  # gone again, or not ours to read: the audit says so

    def _watch(self, directory: str, more: int = 0) -> bool:
        """False where there is nothing to watch. A directory without a watch still counts as
        one to go into: what it holds must be named."""
        place = os.fsencode(os.path.join(self._root, directory))
        try:
            if directory:
                failpoint("watch.add")
            watch = _checked(_libc.inotify_add_watch(self._fd, place, _WANTED | _HOW | more))
        except OSError as error:
            if not directory:
                raise
            if error.errno == errno.ENOSPC:
                self._unwatched.add(directory)
            return error.errno == errno.ENOSPC
        self._directories[watch] = directory
        self._unwatched.discard(directory)
        return True

    def _leave(self, directory: str, number: int) -> None:
        """What happens in it from now on is told under a new name, or is no longer ours."""
        moved = {w: path for w, path in self._directories.items() if paths.within(path, directory)}
        self._leaving[number] = directory, moved
        for watch in moved:
            del self._directories[watch]

    def _arrive(self, directory: str, number: int) -> None:
        """Watches stay with their directories. Set anew, they would miss what was removed since:
        it is not there to be named. Neither is what was removed just before, so what was hinted at
        under the old name is hinted at under the new one."""
        before, moved = self._leaving.pop(number, ("", {}))
        if before:
            self._recent.add(self._paths)
            hinted = self._recent.under(before)
            self._paths |= {directory + path[len(before) :] for path in hinted}
        for watch, path in moved.items():
            self._directories[watch] = directory + path[len(before) :]

    def _unwatch_gone(self) -> None:
        """Those that arrived nowhere: both notices of a move come at once."""
        for _, moved in self._leaving.values():
            for watch in moved:
                _libc.inotify_rm_watch(self._fd, watch)
        self._leaving.clear()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _BUFFER)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            watch, mask, number, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            self._take(watch, mask, number, data[at - length : at].rstrip(b"\0"))

    def _take(self, watch: int, mask: int, number: int, raw_name: bytes) -> None:
        directory = self._directories.get(watch)
        if mask & _OVERFLOW:
            self._lose("overflow")
        elif mask & _IGNORED:
            self._directories.pop(watch, None)
        elif directory == "" and mask & _ROOT_GONE:
            self._lose("gone")
        elif directory is not None and raw_name:
            name = os.fsdecode(raw_name)
            if _wanted(directory, name):
                self._note(_below(directory, name), mask, number)

    def _note(self, path: str, mask: int, number: int) -> None:
        self._paths.add(path)
        self._something.set()
        if mask & _IS_DIRECTORY and mask & _MOVED_FROM:
            self._leave(path, number)
        if mask & _IS_DIRECTORY and mask & _MOVED_TO:
            self._arrive(path, number)
        if mask & _IS_DIRECTORY and mask & (_CREATE | _MOVED_TO) and self._watch(path):
            self._new.append(path)

    def _lose(self, loss: Loss) -> None:
        self._lost = loss
        self._something.set()


def _wanted(directory: str, name: str) -> bool:
    return paths.trackable(name) and (bool(directory) or name != paths.RESERVED)


def _below(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
