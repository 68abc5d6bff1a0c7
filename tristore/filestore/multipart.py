"""A large object on its way into a bucket: uploaded in parts, visible only when it is completed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import obstore

from tristore.errors import StorageRefused, TristoreError, Unavailable
from tristore.filestore.bucket import PATIENCE, TOKEN, Bucket, plain, refusals
from tristore.filestore.content import Fingerprint

PART = 8 * 1024 * 1024
# Parts under way at once; with those being filled they bound the memory of an upload.
_AT_ONCE = 2


class Abandoned(Exception):
    """Ends the client's upload, which then asks the store to forget its parts."""


class Multipart:
    """The client completes an upload when its iterator ends, so the end is held back until then."""

    def __init__(self, bucket: Bucket, path: str, token: str) -> None:
        self.path = path
        self.size = 0
        self._seconds = bucket.seconds
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._given_up = False
        self._upload = asyncio.ensure_future(
            obstore.put_async(
                bucket.patient,
                path,
                self._parts(),
                attributes={TOKEN: token},
                use_multipart=True,
                chunk_size=PART,
                max_concurrency=_AT_ONCE,
            )
        )

    async def write(self, data: bytes) -> None:
        """Waits for the store; an error of it comes out here or in `complete`."""
        await self._give(data)
        self.size += len(data)
        if self._upload.done():
            with refusals(writing=True):
                self._upload.result()

    async def complete(self) -> Fingerprint:
        """An error leaves open whether it happened: the client asks the store to forget the parts
        of an upload whose completion it did not see, and tells how that went."""
        try:
            await self._give(None)
            async with asyncio.timeout(self._seconds * PATIENCE):
                with refusals(writing=True):
                    done = await asyncio.shield(self._upload)
        except (StorageRefused, TimeoutError) as error:
            raise Unavailable("the mount's S3 server did not complete an upload") from error
        return Fingerprint(self.size, etag=plain(done["e_tag"]))

    async def abandon(self) -> None:
        self._given_up = True
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._waiting.put_nowait(None)
        await asyncio.wait({self._upload}, timeout=self._seconds)
        self._upload.cancel()
        with suppress(Abandoned, TristoreError, asyncio.CancelledError), refusals(writing=True):
            self._upload.result()

    async def _give(self, data: bytes | None) -> None:
        giving = asyncio.ensure_future(self._waiting.put(data))
        either = {giving, self._upload}
        try:
            done, _ = await asyncio.wait(
                either, timeout=self._seconds * _AT_ONCE, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            giving.cancel()
        if not done:
            raise Unavailable("the mount's S3 server takes no more of the upload; try again")

    async def _parts(self) -> AsyncIterator[bytes]:
        while (data := await self._waiting.get()) is not None:
            if self._given_up:
                break
            yield data
        if self._given_up:
            raise Abandoned
