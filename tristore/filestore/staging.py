"""Content on its way in or out of a mounted folder: staged, or removed and not yet forgotten."""

import errno
import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Literal, TypeVar

from tristore.errors import Unavailable
from tristore.filestore import paths
from tristore.filestore.beneath import Beneath
from tristore.filestore.content import Staged
from tristore.filestore.disk import Disk
from tristore.filestore.looks import fingerprint, look
from tristore.filestore.trash import forget_tree

T = TypeVar("T")
Area = Literal["staging", "trash"]
AREAS: tuple[Area, ...] = ("staging", "trash")

_log = logging.getLogger(__name__)


class Staging:
    """The folder `.tristore` at the root of a mount, on the same filesystem as its files."""

    def __init__(self, beneath: Beneath, disk: Disk) -> None:
        self._beneath = beneath
        self._disk = disk
        self._held: int | None = None
        self._held_turn = 0
        self._holding = Lock()

    def found(self) -> None:
        """Makes the folder, once, for a new mount."""
        with suppress(FileExistsError):
            self._disk.make_directory(self._beneath.root, paths.RESERVED, 0o700)

    def check(self) -> None:
        """Without the folder this is not the mount, but the place where its disk should be: then
        nothing may be called missing, and nothing written."""
        try:
            os.close(self._beneath.open_directory(paths.RESERVED))
        except FileNotFoundError:
            raise Unavailable(
                f"the mount's folder has no {paths.RESERVED}; is its disk mounted? If it is, make "
                f"a folder {paths.RESERVED} in it"
            ) from None

    @contextmanager
    def area(self, area: Area) -> Iterator[int]:
        """Opened anew each time: whoever empties the folder must not leave us a dead one."""
        try:
            fd = self._beneath.open_directory(f"{paths.RESERVED}/{area}")
        except FileNotFoundError:
            fd = self._make(area)
        try:
            yield fd
        finally:
            os.close(fd)

    def held(self) -> int:
        """The staging area, kept open: to open it twice an upload would cost a tenth of it."""
        if self._held is None or self._held_turn != self._beneath.turn:
            self._renew()
        assert self._held is not None
        return self._held

    def at(self, call: Callable[[int], T]) -> T:
        """The answer of a call on the staging area, asked again of a new one where it was dead."""
        try:
            return call(self.held())
        except FileNotFoundError:
            self._renew()
            return call(self.held())

    def _renew(self) -> None:
        """Whoever emptied the folder, or mounted another disk, left us a dead one."""
        with self._holding, self.area("staging") as fd:
            self._held_turn = self._beneath.turn
            if self._held is None:
                self._held = os.dup(fd)
            else:
                # Under the same number, which other threads may be using.
                os.dup2(fd, self._held, inheritable=False)

    def close(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def upload(self, token: str) -> "Upload":
        made = self.at(lambda staging: self._disk.create(staging, token))
        return Upload(self, token, made, self._disk)

    def whole(self, token: str, chunks: Iterable[bytes]) -> Staged:
        """Small content, in one call."""
        upload = self.upload(token)
        try:
            upload.write(chunks)
            return upload.finish()
        except BaseException:
            upload.abandon()
            raise

    def discard(self, token: str) -> None:
        for area in AREAS:
            with self._existing(area) as fd:
                if fd is not None:
                    self._forget(fd, token)

    def sweep(self, older_than_seconds: float, keep: set[str]) -> int:
        return sum(self._sweep_area(area, older_than_seconds, keep) for area in AREAS)

    def _sweep_area(self, area: Area, older_than_seconds: float, keep: set[str]) -> int:
        latest = time.time() - older_than_seconds
        with self._existing(area) as fd:
            if fd is None:
                return 0
            old = [name for name in os.listdir(fd) if name not in keep and _left(fd, name, latest)]
            return sum(self._swept(fd, name) for name in old)

    def _swept(self, fd: int, name: str) -> bool:
        try:
            self._forget(fd, name)
        except OSError as error:
            # One that cannot be removed must not keep the others.
            _log.warning("something in the trash stays: %s", error.strerror)
            return False
        return True

    def _forget(self, fd: int, name: str) -> None:
        try:
            self._disk.remove(fd, name)
        except FileNotFoundError:
            pass
        except OSError as error:
            # What Linux and what other systems say of a directory.
            if error.errno not in (errno.EISDIR, errno.EPERM):
                raise
            forget_tree(fd, name)

    @contextmanager
    def _existing(self, area: Area) -> Iterator[int | None]:
        try:
            fd = self._beneath.open_directory(f"{paths.RESERVED}/{area}")
        except FileNotFoundError:
            yield None
            return
        try:
            yield fd
        finally:
            os.close(fd)

    def _make(self, area: Area) -> int:
        self.check()
        with self._beneath.directory(paths.RESERVED) as own, suppress(FileExistsError):
            self._disk.make_directory(own, area, 0o700)
        return self._beneath.open_directory(f"{paths.RESERVED}/{area}")


class Upload:
    """One file being staged; used by one thread at a time, ended by `finish` or `abandon`."""

    def __init__(self, staging: Staging, token: str, fd: int, disk: Disk) -> None:
        self._staging = staging
        self._token = token
        self._fd = fd
        self._disk = disk
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, chunks: Iterable[bytes]) -> None:
        for chunk in chunks:
            self._hash.update(chunk)
            self._disk.write(self._fd, chunk)
            self._size += len(chunk)

    def finish(self) -> Staged:
        """Durable afterwards. A sync that failed is not tried again: the kernel may have dropped
        the pages it could not write, and a second sync would call them safe."""
        # The kernel's own stamps are some milliseconds apart: whoever writes to the file the moment
        # it is visible would leave the same one.
        stamp = time.time_ns()
        os.utime(self._fd, ns=(stamp, stamp))
        self._disk.sync(self._fd)
        looks = fingerprint(os.fstat(self._fd))
        self._close()
        return Staged(self._token, self._size, f"sha256:{self._hash.hexdigest()}", looks)

    def abandon(self) -> None:
        self._close()
        self._staging.discard(self._token)

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)


def _left(fd: int, name: str, latest: float) -> bool:
    """By the time of the last change to the inode: a rename into the trash counts, too."""
    try:
        return look(fd, name).st_ctime < latest
    except FileNotFoundError:
        return False
