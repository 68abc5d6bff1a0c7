"""The sums beside a file, as Hadoop's file system keeps them: compared, and written."""

import os
import struct
import zlib
from mmap import ACCESS_READ, mmap
from pathlib import Path
from uuid import uuid4

# `.name.crc` holds these bytes, the length of a piece, and the CRC-32 of each piece.
_MAGIC = b"crc\x00"
_PIECE = 2**16


def beside(file: Path) -> Path:
    return file.with_name(f".{file.name}.crc")


def agree(file: Path) -> bool:
    """Whether the file is as its sums say; one without sums may be."""
    try:
        told = beside(file).read_bytes()
    except FileNotFoundError:
        # Written by something that leaves none: the store must answer for its bytes.
        return True
    if told[:4] != _MAGIC or len(told) < 8:
        return False
    (piece,) = struct.unpack_from(">I", told, 4)
    size, sums = file.stat().st_size, told[8:]
    if not size or len(sums) != 4 * -(-size // max(piece, 1)):
        return False
    with file.open("rb") as opened, mmap(opened.fileno(), 0, access=ACCESS_READ) as content:
        return _sums(memoryview(content), max(piece, 1)) == sums


def write(file: Path) -> None:
    """Whole or not at all: half of the sums would make a good file look damaged."""
    told = _MAGIC + struct.pack(">I", _PIECE) + _sums(memoryview(file.read_bytes()), _PIECE)
    fresh = beside(file).with_suffix(f".{uuid4().hex}")
    with fresh.open("xb") as opened:
        opened.write(told)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(fresh, beside(file))


def _sums(content: memoryview, piece: int) -> bytes:
    with content:
        starts = range(0, len(content), piece)
        sums = [zlib.crc32(content[start : start + piece]) for start in starts]
    return struct.pack(f">{len(sums)}I", *sums)
