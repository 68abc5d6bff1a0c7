"""The file behind a publisher's buffer: unsent events that outlive the process.

One event a line, with a checksum before it. A line that was cut off by a crash was never
promised to anybody; a damaged line in the middle costs that one event and is reported.
"""

import fcntl
import logging
import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from tristore.errors import StartRefused

_log = logging.getLogger(__name__)


class Spool:
    """Used by one publisher at a time; every method returns only when the disk has it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._file: int | None = None

    def open(self) -> list[bytes]:
        """Takes the file and returns what an earlier process left in it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._take()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        data = self.path.read_bytes()
        bodies, damaged = read(data)
        if damaged:
            _log.error("buffer file damaged", extra={"file": str(self.path), "lines": damaged})
        if encode(bodies) != data:
            self.replace(bodies)
        return bodies

    def append(self, bodies: Iterable[bytes]) -> None:
        _write(self._opened(), encode(bodies))

    def replace(self, bodies: Sequence[bytes]) -> None:
        """The file holds these and nothing else, at every moment either the old or the new."""
        fresh = self.path.with_name(self.path.name + ".new")
        file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            _write(file, encode(bodies))
            os.rename(fresh, self.path)
            _sync_folder(self.path.parent)
        except BaseException:
            os.close(file)
            raise
        os.close(self._opened())
        self._file = file

    def clear(self) -> None:
        os.ftruncate(self._opened(), 0)
        os.fsync(self._opened())

    def set_aside(self, body: bytes) -> Path:
        """Keeps an event the bus will never take, for a person to look at."""
        path = self.path.with_name(self.path.name + ".refused")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            _write(file, body + b"\n")
        finally:
            os.close(file)
        return path

    def close(self) -> None:
        for file in (self._file, self._lock):
            if file is not None:
                os.close(file)
        self._file = self._lock = None

    def _take(self) -> None:
        # A file of its own, because the spool itself is replaced by renaming.
        path = self.path.with_name(self.path.name + ".lock")
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise StartRefused(
                f"another publisher uses the buffer file {self.path}; give each its own"
            ) from None

    def _opened(self) -> int:
        assert self._file is not None, "open() comes first"
        return self._file


def encode(bodies: Iterable[bytes]) -> bytes:
    return b"".join(b"%08x %b\n" % (zlib.crc32(body), body) for body in bodies)


def read(data: bytes) -> tuple[list[bytes], int]:
    """The whole events in these bytes, and how many damaged lines lie among them."""
    *lines, _torn = data.split(b"\n")
    bodies = [line[9:] for line in lines if _sound(line)]
    return bodies, len(lines) - len(bodies)


def _sound(line: bytes) -> bool:
    return line[:9] == b"%08x " % zlib.crc32(line[9:]) and len(line) > 9


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.fsync(file)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
