"""The calls by which a mounted folder is changed: few, so that a test can record or lose them."""

import ctypes
import errno
import os
from typing import Final

from tristore.failpoints import failpoint

_RENAME_NOREPLACE: Final = 1
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


class Disk:
    """Every name is one component in an open directory, so none of these can follow a link."""

    def create(self, directory: int, name: str) -> int:
        return os.open(name, _CREATE, 0o666, dir_fd=directory)

    def write(self, fd: int, data: bytes) -> None:
        failpoint("filestore.disk.write")
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]

    def sync(self, fd: int) -> None:
        failpoint("filestore.disk.sync")
        os.fsync(fd)

    def make_directory(self, directory: int, name: str, mode: int) -> None:
        os.mkdir(name, mode, dir_fd=directory)

    def replace(self, directory: int, name: str, target: int, target_name: str) -> None:
        os.rename(name, target_name, src_dir_fd=directory, dst_dir_fd=target)

    def rename(self, directory: int, name: str, target: int, target_name: str) -> None:
        """EEXIST if anything stands at the target."""
        try:
            _renameat2(directory, name, target, target_name)
        except OSError as error:
            # Not every filesystem knows the flag.
            if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
                raise
            self._rename_by_link(directory, name, target, target_name)

    def remove(self, directory: int, name: str) -> None:
        os.unlink(name, dir_fd=directory)

    def remove_directory(self, directory: int, name: str) -> None:
        """ENOTEMPTY if anything lies in it."""
        os.rmdir(name, dir_fd=directory)

    def _rename_by_link(self, directory: int, name: str, target: int, target_name: str) -> None:
        """A link never replaces; a directory cannot be linked, and replaces only an empty one."""
        try:
            os.link(name, target_name, src_dir_fd=directory, dst_dir_fd=target)
        except PermissionError:
            if _exists(target, target_name):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            self.replace(directory, name, target, target_name)
        else:
            self.remove(directory, name)


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _renameat2(directory: int, name: str, target: int, target_name: str) -> None:
    call = getattr(_libc, "renameat2", None)
    if call is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    source, to = os.fsencode(name), os.fsencode(target_name)
    if call(directory, source, target, to, _RENAME_NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
