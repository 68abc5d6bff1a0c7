"""Objects as streams: one cut into parts on its way in, one read in full or in part."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

from tristore.errors import ContentConflict, ContentGone
from tristore.filestore.bucket import Bucket, Object, RangesIgnored
from tristore.filestore.content import Fingerprint

PIECE = 1024 * 1024


class Parts:
    """A stream cut into pieces worth a call, hashed on the way."""

    def __init__(self, content: AsyncIterator[bytes]) -> None:
        self._content = content
        self.ended = False

    async def next(self, digest: "hashlib._Hash", more_than: int) -> bytes:
        """Less only at the end."""
        chunks: list[bytes] = []
        size = 0
        async for chunk in self._content:
            chunks.append(chunk)
            size += len(chunk)
            if size > more_than:
                break
        else:
            self.ended = True
        data = b"".join(chunks)
        await asyncio.to_thread(digest.update, data)
        return data


async def found(bucket: Bucket, path: str) -> Object:
    there = await bucket.head(path)
    if there is None:
        raise ContentGone("the object is no longer in the bucket; reconcile the path")
    return there


async def open_object(
    bucket: Bucket, path: str, start: int, stop: int | None
) -> tuple[Fingerprint, AsyncIterator[bytes]]:
    if start == 0 and stop is None:
        looks, length, content = await bucket.get(path)
        return looks, _whole(content, length)
    there = (await found(bucket, path)).fingerprint
    stop = there.size if stop is None else min(stop, there.size)
    # To the store a range that is empty or behind the end is an error.
    return await _range(bucket, path, start, stop) if start < stop else (there, _nothing())


async def _range(
    bucket: Bucket, path: str, start: int, stop: int
) -> tuple[Fingerprint, AsyncIterator[bytes]]:
    try:
        looks, length, content = await bucket.get(path, start, stop)
    except RangesIgnored:
        looks, _, content = await bucket.get(path)
        length, content = stop - start, _slice(content, start, stop)
    return looks, _whole(content, length)


async def _whole(content: AsyncIterator[bytes], length: int) -> AsyncIterator[bytes]:
    async for piece in content:
        length -= len(piece)
        yield piece
    if length:
        raise ContentConflict("the object changed while it was read; read it again")


async def _slice(content: AsyncIterator[bytes], start: int, stop: int) -> AsyncIterator[bytes]:
    at = 0
    async for piece in content:
        if wanted := piece[max(0, start - at) : max(0, stop - at)]:
            yield wanted
        at += len(piece)
        if at >= stop:
            return


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""
