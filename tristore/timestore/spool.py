"""A request's body on disk: unnamed, hashed on the way, and gone when it is closed."""

import asyncio
import errno
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tristore.errors import StorageFull, TooLarge, TristoreError, Unavailable

# Pieces come small; each way into a thread has its price.
_GATHER_BYTES = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class Spooled:
    file: IO[bytes]
    size: int
    sha256: bytes


@asynccontextmanager
async def spooled(body: AsyncIterator[bytes], folder: Path, most: int) -> AsyncIterator[Spooled]:
    file = await asyncio.to_thread(_open, folder)
    try:
        yield await _fill(file, body, most)
    finally:
        file.close()


def refusal(error: OSError) -> TristoreError:
    """What a disk's error means to a caller."""
    if error.errno in _FULL:
        return StorageFull("the disk of the tables is full; try again when there is room")
    return Unavailable("the tables' storage cannot be written; the reason is in the server's log")


async def _fill(file: IO[bytes], body: AsyncIterator[bytes], most: int) -> Spooled:
    digest, size, waiting = hashlib.sha256(), 0, bytearray()
    async for piece in body:
        size += len(piece)
        if size > most:
            raise TooLarge(f"the body is larger than {most} bytes; send it in several")
        waiting += piece
        if len(waiting) >= _GATHER_BYTES:
            await asyncio.to_thread(_write, file, digest, bytes(waiting))
            waiting.clear()
    await asyncio.to_thread(_write, file, digest, bytes(waiting))
    return Spooled(file, size, digest.digest())


def _open(folder: Path) -> IO[bytes]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        raise refusal(error) from error


def _write(file: IO[bytes], digest: "hashlib._Hash", data: bytes) -> None:
    digest.update(data)
    try:
        os.lseek(file.fileno(), 0, os.SEEK_END)
        view = memoryview(data)
        while view:
            view = view[os.write(file.fileno(), view) :]
    except OSError as error:
        raise refusal(error) from error
