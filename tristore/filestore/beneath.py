"""Directories opened below a root so that no link, however it is swapped, leads outside it."""

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

# The same number on every architecture: openat2 came after the numbers were made one.
_SYS_OPENAT2: Final = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_RESOLVE: Final = _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# The kernel answers EAGAIN when the tree was renamed under its feet.
_TRIES: Final = 100


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_libc = ctypes.CDLL(None, use_errno=True)


class Beneath:
    """The tree below one directory; paths use "/" and have passed `paths.check`, or are ""."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._path = root
        self.root = os.open(root, _DIRECTORY)
        self._known = os.fstat(self.root)
        # Counts what was found at the root's path, one after the other.
        self.turn = 0

    def follow(self) -> None:
        """Goes on with what stands at the root's path now: a disk may have been mounted there."""
        if os.path.samestat(os.stat(self._path), self._known):
            return
        fd = os.open(self._path, _DIRECTORY)
        # Under the same number, which other threads may be using.
        os.dup2(fd, self.root, inheritable=False)
        self._known = os.fstat(fd)
        self.turn += 1
        os.close(fd)

    def close(self) -> None:
        os.close(self.root)

    def open_directory(self, path: str) -> int:
        """A descriptor of the directory; a link anywhere on the way is ELOOP."""
        if kernel_resolves():
            return _openat2(self.root, path or ".", _DIRECTORY)
        return walk_to(self.root, path)

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        fd = self.open_directory(path)
        try:
            yield fd
        finally:
            os.close(fd)


def walk_to(root: int, path: str) -> int:
    """The same without the kernel's help: each name is opened in the directory before it."""
    fd = os.open(".", _DIRECTORY, dir_fd=root)
    for name in filter(None, path.split("/")):
        above = fd
        try:
            fd = open_in(above, name)
        finally:
            os.close(above)
    return fd


def open_in(directory: int, name: str) -> int:
    """A directory by its one name in an open directory."""
    if name == "..":
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except NotADirectoryError:
        # Said of a link, too, which must be told from a file, as openat2 does.
        if stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


@cache
def kernel_resolves() -> bool:
    """Whether openat2 is there; a sandbox may forbid it."""
    root = os.open("/", _DIRECTORY)
    try:
        os.close(_openat2(root, ".", _DIRECTORY))
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM, errno.EINVAL):
            return False
        raise
    finally:
        os.close(root)
    return True


def _openat2(root: int, path: str, flags: int) -> int:
    how = _OpenHow(flags, 0, _RESOLVE)
    name = os.fsencode(path)
    for _ in range(_TRIES):
        fd = _libc.syscall(_SYS_OPENAT2, root, name, ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return int(fd)
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))
