"""How a query worker and the process that asks it speak over pipes: lengths, then bytes."""

import asyncio
import struct
from typing import BinaryIO

_LENGTHS = struct.Struct(">QQ")
# A worker that was taken over must not fill the memory of the one that reads it.
_LONGEST = 2**30


def frame(head: bytes, body: bytes = b"") -> bytes:
    return _LENGTHS.pack(len(head), len(body)) + head + body


async def receive(stream: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Raises IncompleteReadError when the other side is gone."""
    head, body = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
    if head + body > _LONGEST:
        raise asyncio.IncompleteReadError(b"", head + body)
    return await stream.readexactly(head), await stream.readexactly(body)


def take(stream: BinaryIO) -> bytes | None:
    """The next request; None when the asking process is gone."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    head, _ = _LENGTHS.unpack(lengths)
    found = stream.read(head)
    return found if len(found) == head else None
