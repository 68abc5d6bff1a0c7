"""The bytes of a regular file, piece by piece, for as long as it stays what it was."""

import os
import stat
from collections.abc import Callable

from tristore.errors import ContentConflict
from tristore.filestore.content import Fingerprint
from tristore.filestore.looks import fingerprint, look
from tristore.filestore.refusals import not_regular
from tristore.filestore.threads import Threads

PIECE = 1024 * 1024
# Read in one go by a thread that hashes or copies: a cancelled caller waits for no more than it.
STRETCH = 32 * PIECE
# Never waits for the other end of a pipe, and follows no link.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY


class OpenFile:
    """An open regular file. Closes itself when it is forgotten, for a reader may never start."""

    def __init__(self, directory: int, name: str) -> None:
        self._fd = -1
        # Looked at first, because to open a device can be an act in itself.
        if not stat.S_ISREG(look(directory, name).st_mode):
            raise not_regular()
        self._fd = os.open(name, _READ, dir_fd=directory)
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode):
            self.close()
            raise not_regular()
        self.fingerprint: Fingerprint = fingerprint(found)

    def piece(self, start: int, stop: int) -> bytes:
        """Up to a piece of what lies from `start` to `stop`; the file must reach that far."""
        data = os.pread(self._fd, min(PIECE, stop - start), start)
        if not data and start < stop:
            raise changed()
        return data

    def feed(self, take: Callable[[bytes], object], start: int) -> int:
        """Hands a stretch of the file on; says where the next one begins."""
        size = self.fingerprint.size
        stop = min(size, start + STRETCH)
        while start < stop:
            data = self.piece(start, stop)
            take(data)
            start += len(data)
        if start >= size and fingerprint(os.fstat(self._fd)) != self.fingerprint:
            raise changed()
        return start

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class FilePieces:
    """An async iterator over a range of an open file, which it closes at its end."""

    def __init__(self, threads: Threads, file: OpenFile, start: int, stop: int) -> None:
        self._threads = threads
        self.file = file
        self._at = start
        self._stop = min(stop, file.fingerprint.size)
        self._first: bytes | None = None

    def prefetch(self) -> None:
        """Reads the first piece where the caller is already in a thread: most files end with it."""
        if self._at < self._stop:
            self._first = self.file.piece(self._at, self._stop)

    def __aiter__(self) -> "FilePieces":
        return self

    async def __anext__(self) -> bytes:
        if self._at >= self._stop:
            self.file.close()
            raise StopAsyncIteration
        data, self._first = self._first, None
        if data is None:
            data = await self._threads.run(self.file.piece, self._at, self._stop)
        self._at += len(data)
        return data

    async def aclose(self) -> None:
        self.file.close()


def changed() -> ContentConflict:
    return ContentConflict("the file changed while it was read; read it again")
