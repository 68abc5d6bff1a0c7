"""The lock on a data folder: one supervisor at a time, freed by the kernel when it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tristore.errors import StartRefused
from tristore.local import private_file


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Makes the folder if it is missing."""
    fd = _open(folder)
    try:
        _take(fd, folder)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def _open(folder: Path) -> int:
    try:
        private_file.make_folder(folder)
        return os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartRefused(
            f"the data folder {folder} cannot be used ({error.strerror}); "
            "choose another with --data-dir"
        ) from None


def _take(fd: int, folder: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).decode().strip() or "unknown"
        raise StartRefused(
            f"a platform (pid {holder}) already runs on {folder}; "
            "stop it, or choose another folder with --data-dir"
        ) from None
