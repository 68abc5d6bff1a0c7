"""How a file or directory on disk looks: the fingerprint and kind a stat gives."""

import errno
import os
import stat

from tristore.filestore.content import Entry, EntryKind, Fingerprint

UNKNOWN = Fingerprint(0)


def look(directory: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=directory, follow_symlinks=False)


def fingerprint(found: os.stat_result) -> Fingerprint:
    inode = found.st_ino
    # A bigint is signed; an inode number is not.
    signed = inode if inode < 1 << 63 else inode - (1 << 64)
    if stat.S_ISREG(found.st_mode):
        return Fingerprint(found.st_size, signed, found.st_mtime_ns)
    # A directory's time moves with what lies in it, and says nothing about the directory.
    return Fingerprint(0, signed)


def kind(found: os.stat_result) -> EntryKind:
    if stat.S_ISREG(found.st_mode):
        return "file"
    return "directory" if stat.S_ISDIR(found.st_mode) else "other"


def entry(path: str, found: os.stat_result) -> Entry:
    return Entry(path, kind(found), fingerprint(found))


def absent(error: OSError) -> bool:
    """Whether it means that nothing of the mount is there; a link is nothing of it."""
    return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def same(expected: Fingerprint, found: Fingerprint) -> bool:
    """Whether what is known of the expected content still holds."""
    pairs = zip(expected, found, strict=True)
    return all(wanted is None or wanted == there for wanted, there in pairs)
