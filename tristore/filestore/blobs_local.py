"""The content of a mount that is a folder on this machine."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

from tristore.config import Settings
from tristore.errors import ContentGone, MountRefused, ReadOnly, Terminal, Unavailable
from tristore.filestore import paths
from tristore.filestore.beneath import Beneath
from tristore.filestore.content import Blobs, Entry, Fingerprint, Staged
from tristore.filestore.disk import Disk
from tristore.filestore.folder import Folder
from tristore.filestore.looks import same
from tristore.filestore.model import OBSERVE, Mount
from tristore.filestore.reading import PIECE, FilePieces, OpenFile, changed
from tristore.filestore.refusals import refusal
from tristore.filestore.roots import check_root
from tristore.filestore.staging import Upload
from tristore.filestore.threads import Threads
from tristore.filestore.tree import Tree

GONE = "the mount's folder is not there; is its disk mounted?"

P = ParamSpec("P")
T = TypeVar("T")


class LocalBlobs(Blobs):
    supports_directories = True

    def __init__(self, beneath: Beneath, *, writable: bool = True, disk: Disk | None = None):
        self._folder = Folder(beneath, disk or Disk(), observed=not writable)
        self._beneath = beneath
        self._writable = writable
        self._threads = Threads("tristore-mount")

    @classmethod
    async def open(cls, mount: Mount, settings: Settings) -> "LocalBlobs":
        root = str(mount.config["root"])
        check_root(root, settings)
        try:
            beneath = await asyncio.to_thread(Beneath, root)
        except OSError as error:
            # Number 0: a mount in the making, whose maker has mistyped it.
            if not mount.id:
                raise MountRefused("there is no such folder, or it cannot be opened") from error
            raise Unavailable(GONE) from error
        return cls(beneath, writable=mount.access != OBSERVE)

    async def probe(self) -> None:
        try:
            await self._reading(self._folder.probe)
        except Terminal as error:
            raise MountRefused(f"the folder cannot be used: {error}") from error

    async def stage(self, token: str, content: AsyncIterator[bytes], path: str) -> Staged:
        first = await _piece(content)
        if sum(map(len, first)) < PIECE:
            return await self._writing(self._folder.staging.whole, token, first)
        upload = await self._writing(self._folder.staging.upload, token)
        writing = self._threads.start(upload.write, first)
        try:
            # One piece is hashed and written while the next one is received.
            while chunks := await _piece(content):
                await self._settled(writing)
                writing = self._threads.start(upload.write, chunks)
            await self._settled(writing)
            return await self._writing(upload.finish)
        except BaseException:
            with suppress(OSError):
                await writing
            await self._threads.run(upload.abandon)
            raise

    async def stage_copy(self, token: str, source: str, path: str) -> Staged:
        file = await self._reading(self._open, source)
        upload = await self._writing(self._folder.staging.upload, token)
        try:
            await self._copy(file, upload)
            if not await self._still(source, file.fingerprint):
                raise changed()
            return await self._writing(upload.finish)
        except BaseException:
            await self._threads.run(upload.abandon)
            raise
        finally:
            file.close()

    async def _copy(self, file: OpenFile, upload: Upload) -> None:
        at = 0
        while at < file.fingerprint.size:
            at = await self._writing(file.feed, lambda data: upload.write([data]), at)

    async def _still(self, path: str, fingerprint: Fingerprint) -> bool:
        entry = await self.stat(path)
        if entry is None:
            raise ContentGone("the source vanished while it was copied; nothing was changed")
        return entry.kind == "file" and same(fingerprint, entry.fingerprint)

    async def publish(
        self, token: str, path: str, *, replaces: Fingerprint | None = None
    ) -> Fingerprint:
        return await self._writing(self._folder.publish, token, path, replaces)

    async def discard(self, token: str) -> None:
        await self._writing(self._folder.staging.discard, token)

    async def confirm(self, path: str) -> None:
        await self._writing(self._folder.confirm, path)

    async def stat(self, path: str) -> Entry | None:
        return await self._reading(self._folder.stat, path)

    async def checksum(self, path: str) -> tuple[str, Fingerprint]:
        file = await self._reading(self._open, path)
        digest, at = hashlib.sha256(), 0
        try:
            while at < file.fingerprint.size:
                at = await self._reading(file.feed, digest.update, at)
        finally:
            file.close()
        return f"sha256:{digest.hexdigest()}", file.fingerprint

    async def read(
        self, path: str, start: int = 0, stop: int | None = None
    ) -> tuple[Fingerprint, AsyncIterator[bytes]]:
        pieces = await self._reading(self._open_pieces, path, start, stop)
        return pieces.file.fingerprint, pieces

    def _open(self, path: str) -> OpenFile:
        with self._beneath.directory(paths.folder(path)) as directory:
            return OpenFile(directory, paths.name(path))

    def _open_pieces(self, path: str, start: int, stop: int | None) -> FilePieces:
        file = self._open(path)
        size = file.fingerprint.size
        pieces = FilePieces(self._threads, file, start, size if stop is None else stop)
        pieces.prefetch()
        return pieces

    async def make_directory(self, path: str) -> Fingerprint:
        return await self._writing(self._folder.make_directory, path)

    async def move(self, source: str, target: str) -> Fingerprint:
        return await self._writing(self._folder.move, source, target)

    async def remove(self, path: str, token: str, expected: Fingerprint | None = None) -> None:
        await self._writing(self._folder.remove, path, token, expected)

    def walk(self, prefix: str = "", after: str | None = None) -> AsyncIterator[list[Entry]]:
        return self._batches(Tree(self._beneath, prefix, after, deep=True))

    def list_directory(self, path: str = "") -> AsyncIterator[list[Entry]]:
        return self._batches(Tree(self._beneath, path, None, deep=False))

    async def _batches(self, tree: Tree) -> AsyncIterator[list[Entry]]:
        try:
            await self._reading(self._folder.check)
            while batch := await self._reading(tree.batch):
                yield batch
        finally:
            tree.close()

    async def sweep(self, older_than_seconds: float, keep: set[str]) -> int:
        if not self._writable:
            return 0
        return await self._writing(self._folder.staging.sweep, older_than_seconds, keep)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._threads.close)
        self._folder.staging.close()
        self._beneath.close()

    async def _reading(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._threads.run(self._here(call, *args, **kwargs))
        except OSError as error:
            raise refusal(error, writing=False) from error

    async def _writing(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if not self._writable:
            raise ReadOnly("the mount is only observed; change its files where they are written")
        return await self._settled(self._threads.start(self._here(call, *args, **kwargs)))

    def _here(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
        def made() -> T:
            try:
                self._beneath.follow()
            except OSError as error:
                raise Unavailable(GONE) from error
            return call(*args, **kwargs)

        return made

    async def _settled(self, call: "asyncio.Future[T]") -> T:
        try:
            return await call
        except OSError as error:
            raise refusal(error, writing=True) from error


async def _piece(content: AsyncIterator[bytes]) -> list[bytes]:
    """Chunks that make up a piece; less than one only at the end."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in content:
        chunks.append(chunk)
        size += len(chunk)
        if size >= PIECE:
            break
    return chunks
