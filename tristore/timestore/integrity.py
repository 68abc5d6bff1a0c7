"""Whether the files of a table are those that were written: their size, and their checksums."""

import os
import struct
import zlib
from collections.abc import Iterable
from mmap import ACCESS_READ, mmap
from pathlib import Path

from tristore.errors import TableDamaged
from tristore.timestore.snapshot import File

# Hadoop's file system leaves `.name.crc` beside a file: these bytes, the length of a piece, and
# the CRC-32 of each piece.
_MAGIC = b"crc\x00"


class Integrity:
    """A file that was found whole is not read through again unless it changes."""

    def __init__(self) -> None:
        self._whole: dict[str, tuple[int, int, int]] = {}

    def check(self, table: str, files: Iterable[File]) -> None:
        """DuckDB reads what it finds: of one flipped bit it may make other rows."""
        for file in files:
            if not self._is_whole(file):
                raise damaged(table)

    def _is_whole(self, file: File) -> bool:
        try:
            found = os.stat(file.path)
        except OSError:
            return False
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._whole.get(file.path) == seen:
            return True
        if found.st_size != file.bytes or not _sums_agree(Path(file.path)):
            return False
        self._whole[file.path] = seen
        return True


def damaged(table: str) -> TableDamaged:
    return TableDamaged(
        f"a file of table {table} is gone or damaged; restore the table from a backup, or rebuild "
        "it; other tables are not affected"
    )


def _sums_agree(file: Path) -> bool:
    try:
        told = file.with_name(f".{file.name}.crc").read_bytes()
    except FileNotFoundError:
        # Written by something else than Hadoop: the store must answer for its bytes.
        return True
    if told[:4] != _MAGIC or len(told) < 8:
        return False
    (piece,) = struct.unpack_from(">I", told, 4)
    with file.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as content:
        return _pieces_agree(memoryview(content), piece, told[8:])


def _pieces_agree(content: memoryview, piece: int, sums: bytes) -> bool:
    with content:
        starts = range(0, len(content), max(piece, 1))
        if len(sums) != 4 * len(starts):
            return False
        wanted = struct.unpack(f">{len(starts)}I", sums)
        return all(
            zlib.crc32(content[start : start + piece]) == crc
            for start, crc in zip(starts, wanted, strict=True)
        )
