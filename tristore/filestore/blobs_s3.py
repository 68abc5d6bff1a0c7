"""The content of a mount that is a bucket on an S3 server."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import NamedTuple
from uuid import uuid4

from tristore.config import Settings
from tristore.errors import (
    ContentConflict,
    ContentGone,
    InvalidPath,
    MountRefused,
    ReadOnly,
    StagingLost,
    StorageRefused,
    Unavailable,
)
from tristore.filestore import paths
from tristore.filestore.bucket import CHECKSUM, TOKEN, Bucket, Object
from tristore.filestore.content import Blobs, Entry, Fingerprint, Staged
from tristore.filestore.listing import Listing
from tristore.filestore.looks import same
from tristore.filestore.model import OBSERVE, Mount
from tristore.filestore.multipart import PART, Multipart
from tristore.filestore.object_streams import PIECE, Parts, found, open_object
from tristore.filestore.places import place

# S3 counts the prefix in, too.
_MAX_KEY_BYTES = 1024
# The most that a store copies by one call.
_MAX_COPY_BYTES = 5 * 1024**3


class Held(NamedTuple):
    """Content small enough to wait in memory, and go out by one conditional write."""

    data: bytes
    checksum: str


class Copied(NamedTuple):
    """An object that the store itself will copy."""

    source: Object


class S3Blobs(Blobs):
    supports_directories = False

    def __init__(self, bucket: Bucket, *, prefix: str = "", writable: bool = True) -> None:
        self._bucket = bucket
        self._key_bytes = _MAX_KEY_BYTES - len(prefix.encode()) - bool(prefix)
        self._writable = writable
        self._staged: dict[str, tuple[float, Held | Copied | Multipart]] = {}

    @classmethod
    async def open(cls, mount: Mount, settings: Settings) -> "S3Blobs":
        where = await place(mount.config, settings)
        writable = mount.access != OBSERVE
        return cls(Bucket(where), prefix=where.prefix, writable=writable)

    async def probe(self) -> None:
        """A store that writes where it was told not to would lose what others wrote."""
        try:
            async with aclosing(Listing(self._bucket).walk("", None)) as batches:
                await anext(batches, None)
            if self._writable:
                await self._probe_conditions(f"{paths.RESERVED}/probe-{uuid4()}")
        except (ContentGone, StorageRefused) as error:
            raise MountRefused(f"the bucket cannot be used: {error}") from error

    async def _probe_conditions(self, path: str) -> None:
        made = await self._bucket.put(path, b"1", {}, None)
        try:
            for replaces in (None, "0" * 32):
                try:
                    await self._bucket.put(path, b"2", {}, replaces)
                except ContentConflict:
                    continue
                raise MountRefused(
                    "the S3 server ignores conditions on writes (If-Match, If-None-Match), so it "
                    "cannot keep two writers apart; use it with access `observe`, or another one"
                )
            await self._bucket.put(path, b"3", {}, made.etag)
        finally:
            await self._bucket.delete(path)

    async def stage(self, token: str, content: AsyncIterator[bytes], path: str) -> Staged:
        self._check(path)
        digest, parts = hashlib.sha256(), Parts(content)
        first = await parts.next(digest, PART)
        if parts.ended:
            return self._hold(token, Held(first, f"sha256:{digest.hexdigest()}"))
        upload = Multipart(self._bucket, path, token)
        try:
            await upload.write(first)
            del first
            while data := await parts.next(digest, PIECE):
                await upload.write(data)
        except BaseException:
            await upload.abandon()
            raise
        self._staged[token] = (time.monotonic(), upload)
        return Staged(token, upload.size, f"sha256:{digest.hexdigest()}", None)

    def _hold(self, token: str, held: Held) -> Staged:
        self._staged[token] = (time.monotonic(), held)
        return Staged(token, len(held.data), held.checksum, None)

    async def stage_copy(self, token: str, source: str, path: str) -> Staged:
        self._check(path)
        there = await found(self._bucket, source)
        size = there.fingerprint.size
        if PART < size <= _MAX_COPY_BYTES:
            self._staged[token] = (time.monotonic(), Copied(there))
            return Staged(token, size, there.checksum, None)
        looks, content = await self.read(source)
        staged = await self.stage(token, content, path)
        if not same(looks, there.fingerprint):
            await self.discard(token)
            raise ContentConflict("the source changed while it was copied; try again")
        return staged

    async def publish(
        self, token: str, path: str, *, replaces: Fingerprint | None = None
    ) -> Fingerprint:
        self._check(path)
        _, staged = self._staged.get(token, (0.0, None))
        if staged is None:
            return await self._published(token, path)
        if isinstance(staged, Held):
            looks = await self._put(token, path, staged, replaces)
        else:
            await self._expect(path, replaces)
            del self._staged[token]
            looks = await self._finish(token, staged, path)
        self._staged.pop(token, None)
        return looks

    async def _put(
        self, token: str, path: str, held: Held, replaces: Fingerprint | None
    ) -> Fingerprint:
        attributes = {TOKEN: token, CHECKSUM: held.checksum}
        etag = None if replaces is None else replaces.etag or "unknown"
        try:
            looks = await self._bucket.put(path, held.data, attributes, etag)
        except ContentConflict:
            # The client may have tried twice, and met the first of its own.
            there = await self._bucket.head(path)
            if there is None or there.token != token:
                raise
            return there.fingerprint
        return looks if looks.etag else (await found(self._bucket, path)).fingerprint

    async def _finish(self, token: str, staged: Copied | Multipart, path: str) -> Fingerprint:
        if isinstance(staged, Copied):
            return await self._copy(staged.source, path)
        try:
            looks = await staged.complete()
        except Unavailable as error:
            try:
                return await self._published(token, path)
            except StagingLost:
                raise error from None
        return looks if looks.etag else (await found(self._bucket, path)).fingerprint

    async def _copy(self, source: Object, path: str) -> Fingerprint:
        await self._expect(source.path, source.fingerprint)
        await self._bucket.copy(source.path, path)
        return (await found(self._bucket, path)).fingerprint

    async def _published(self, token: str, path: str) -> Fingerprint:
        there = await self._bucket.head(path)
        if there is None or there.token != token:
            raise StagingLost("the staged content is gone; send it again")
        return there.fingerprint

    async def _expect(self, path: str, expected: Fingerprint | None) -> None:
        there = await self._bucket.head(path)
        if expected is None and there is None:
            return
        if expected is None or there is None or not same(expected, there.fingerprint):
            raise ContentConflict("another object stands at the path than expected; reconcile it")

    async def discard(self, token: str) -> None:
        _, staged = self._staged.pop(token, (0.0, None))
        if isinstance(staged, Multipart):
            await staged.abandon()

    async def confirm(self, path: str) -> None:
        """A store that has answered has stored."""

    async def stat(self, path: str) -> Entry | None:
        if not path:
            return Entry("", "directory", Fingerprint(0))
        there = await self._bucket.head(path)
        return None if there is None else Entry(path, "file", there.fingerprint)

    async def checksum(self, path: str) -> tuple[str, Fingerprint]:
        looks, content = await self.read(path)
        digest = hashlib.sha256()
        async for piece in content:
            await asyncio.to_thread(digest.update, piece)
        return f"sha256:{digest.hexdigest()}", looks

    async def read(
        self, path: str, start: int = 0, stop: int | None = None
    ) -> tuple[Fingerprint, AsyncIterator[bytes]]:
        return await open_object(self._bucket, path, start, stop)

    async def make_directory(self, path: str) -> Fingerprint:
        self._check(path)
        return Fingerprint(0)

    async def move(self, source: str, target: str) -> Fingerprint:
        self._check(target)
        old, new = await self._bucket.head(source), await self._bucket.head(target)
        if old is None:
            raise ContentGone("the object is no longer in the bucket; reconcile the path")
        if new is not None and not _twins(old, new):
            raise ContentConflict("another object stands at the target; reconcile it first")
        looks = new.fingerprint if new else await self._copied(old, target)
        await self._bucket.delete(source)
        return looks

    async def _copied(self, source: Object, target: str) -> Fingerprint:
        size = source.fingerprint.size
        if size > PART and size <= _MAX_COPY_BYTES:
            return await self._copy(source, target)
        token = source.token or f"move-{uuid4()}"
        await self.stage_copy(token, source.path, target)
        return await self.publish(token, target)

    async def remove(self, path: str, token: str, expected: Fingerprint | None = None) -> None:
        self._check(path)
        there = await self._bucket.head(path)
        if there is None:
            return
        if expected is not None and not same(expected, there.fingerprint):
            raise ContentConflict("the object was changed from outside; reconcile its path first")
        await self._bucket.delete(path)

    def walk(self, prefix: str = "", after: str | None = None) -> AsyncIterator[list[Entry]]:
        return Listing(self._bucket).walk(prefix, after)

    def list_directory(self, path: str = "") -> AsyncIterator[list[Entry]]:
        return Listing(self._bucket).one(path)

    async def sweep(self, older_than_seconds: float, keep: set[str]) -> int:
        """Only what this process holds; parts of dead ones are for the bucket's lifecycle rule."""
        latest = time.monotonic() - older_than_seconds
        staged = self._staged.items()
        old = [token for token, (at, _) in staged if at < latest and token not in keep]
        for token in old:
            await self.discard(token)
        return len(old)

    async def aclose(self) -> None:
        for token in list(self._staged):
            await self.discard(token)

    def _check(self, path: str) -> None:
        if not self._writable:
            raise ReadOnly("the mount is only observed; change its objects where they are written")
        if len(path.encode()) > self._key_bytes:
            raise InvalidPath(
                f"an S3 key has no more than {_MAX_KEY_BYTES} bytes; shorten the path"
            )


def _twins(old: Object, new: Object) -> bool:
    """Whether a move that was cut short had made its copy already."""
    if old.fingerprint.size != new.fingerprint.size:
        return False
    if old.token is not None:
        return old.token == new.token
    return old.fingerprint.etag is not None and old.fingerprint.etag == new.fingerprint.etag
