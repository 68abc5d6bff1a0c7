"""The changes of a mounted folder, each made visible by one rename and durable when it returns."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from tristore.errors import ContentConflict, MountRefused, StagingLost, Unavailable
from tristore.filestore import paths
from tristore.filestore.beneath import Beneath, open_in
from tristore.filestore.content import Entry, Fingerprint
from tristore.filestore.disk import Disk
from tristore.filestore.looks import absent, entry, fingerprint, look, same
from tristore.filestore.staging import AREAS, Staging

# More directories than a busy tree has in use; then they are learned anew.
_KNOWN = 100_000


class Folder:
    """`observed`: somebody else's folder, in which nothing of the filestore's own stands."""

    def __init__(self, beneath: Beneath, disk: Disk, *, observed: bool = False) -> None:
        self._beneath = beneath
        self._observed = observed
        self._disk = disk
        self._durable: set[tuple[str, int]] = set()
        self.staging = Staging(beneath, disk)

    def stat(self, path: str) -> Entry | None:
        """A link on the way or at the end of it is not content of this mount."""
        try:
            with self._beneath.directory(paths.folder(path)) as directory:
                return entry(path, look(directory, paths.name(path) or "."))
        except OSError as error:
            if not absent(error):
                raise
        self.check()
        return None

    def check(self) -> None:
        """Raises unless what is not found here can be believed to be gone."""
        if not self._observed:
            self.staging.check()

    def publish(self, token: str, path: str, replaces: Fingerprint | None) -> Fingerprint:
        looks = self._staged(token)
        staging = self.staging.held()
        with self._made(paths.folder(path)) as directory:
            name = paths.name(path)
            if replaces is None:
                self._rename(staging, token, directory, name)
            else:
                self._replace(staging, token, directory, name, replaces)
            self._confirm(directory)
        return looks

    def confirm(self, path: str) -> None:
        """A directory that went has nothing in it left to confirm."""
        try:
            os.close(self._beneath.open_directory(paths.folder(path)))
        except OSError as error:
            if absent(error):
                return
            raise
        with self._made(paths.folder(path)) as directory:
            self._confirm(directory)

    def make_directory(self, path: str) -> Fingerprint:
        self.check()
        with self._made(path) as directory:
            return fingerprint(os.fstat(directory))

    def move(self, source: str, target: str) -> Fingerprint:
        with ExitStack() as open_:
            old = open_.enter_context(self._beneath.directory(paths.folder(source)))
            looks = fingerprint(look(old, paths.name(source)))
            new = open_.enter_context(self._made(paths.folder(target)))
            self._rename(old, paths.name(source), new, paths.name(target))
            # The new name first: a power cut may leave both names, never none.
            self._confirm(new)
            self._confirm(old)
        return looks

    def remove(self, path: str, token: str, expected: Fingerprint | None) -> None:
        try:
            self._to_trash(path, token, expected)
        except OSError as error:
            if not absent(error):
                raise
            # Removed by whoever began this, perhaps a moment before the power went.
            self.confirm(path)

    def _to_trash(self, path: str, token: str, expected: Fingerprint | None) -> None:
        with ExitStack() as open_:
            trash = open_.enter_context(self.staging.area("trash"))
            directory = open_.enter_context(self._beneath.directory(paths.folder(path)))
            if expected is not None:
                self._expect(directory, paths.name(path), expected)
            # The token lies in the trash already: this removal has been done before.
            with suppress(FileExistsError):
                self._disk.rename(directory, paths.name(path), trash, token)
            self._confirm(directory)

    def probe(self) -> None:
        os.listdir(self._beneath.root)
        if self._observed:
            return
        self.staging.found()
        device = os.fstat(self._beneath.root).st_dev
        for area in AREAS:
            with self.staging.area(area) as fd:
                if os.fstat(fd).st_dev != device:
                    raise MountRefused("the folder's .tristore lies on another filesystem")
        self.staging.whole("probe", [b"probe"])
        self.staging.discard("probe")

    def _staged(self, token: str) -> Fingerprint:
        try:
            return fingerprint(self.staging.at(lambda staging: look(staging, token)))
        except FileNotFoundError:
            raise StagingLost("the staged content is gone; send it again") from None

    def _rename(self, directory: int, name: str, target: int, target_name: str) -> None:
        try:
            self._disk.rename(directory, name, target, target_name)
        except FileExistsError:
            raise ContentConflict(
                "something the filestore does not know stands at the path; reconcile it first"
            ) from None

    def _replace(
        self, staging: int, token: str, directory: int, name: str, expected: Fingerprint
    ) -> None:
        try:
            self._keep_mode(staging, token, self._expect(directory, name, expected))
        except FileNotFoundError:
            raise ContentConflict("the file was removed from outside; reconcile it first") from None
        self._disk.replace(staging, token, directory, name)

    def _expect(self, directory: int, name: str, expected: Fingerprint) -> os.stat_result:
        found = look(directory, name)
        if not stat.S_ISREG(found.st_mode) or not same(expected, fingerprint(found)):
            raise ContentConflict("the file was changed from outside; reconcile its path first")
        return found

    def _keep_mode(self, staging: int, token: str, replaced: os.stat_result) -> None:
        """A new version may be read by whom the old one could be."""
        mode = stat.S_IMODE(replaced.st_mode) & 0o777
        if mode != stat.S_IMODE(look(staging, token).st_mode):
            os.chmod(token, mode, dir_fd=staging)

    def _confirm(self, directory: int) -> None:
        """A rename is visible and is not taken back: whatever the disk says now, even that it is
        full, the command has not failed and is left to recovery."""
        try:
            self._disk.sync(directory)
        except OSError as error:
            raise Unavailable("the mount's storage does not confirm the change") from error

    @contextmanager
    def _made(self, path: str) -> Iterator[int]:
        """The directory, which survives a power cut from now on, and so do those above it. Those
        that were made for something that failed do not stay."""
        made: list[str] = []
        try:
            fd = self._found(path)
            if fd is None:
                fd = self._make(path, made)
            try:
                yield fd
            finally:
                os.close(fd)
        except BaseException:
            self._unmake(made)
            raise

    def _found(self, path: str) -> int | None:
        try:
            fd = self._beneath.open_directory(path)
        except FileNotFoundError:
            return None
        if self._survives(path, fd):
            return fd
        os.close(fd)
        return None

    def _survives(self, path: str, fd: int) -> bool:
        return not path or (path, os.fstat(fd).st_ino) in self._durable

    def _make(self, path: str, made: list[str]) -> int:
        """From the lowest directory down that is known to survive. One found below it may be a
        moment old, made by a stranger or by another command that has not synced it yet, so it is
        synced as if it were ours."""
        if len(self._durable) > _KNOWN:
            self._durable.clear()
        wanted = [path]
        for above in reversed(["", *paths.parents(path)]):
            if (fd := self._found(above)) is not None:
                break
            wanted.append(above)
        assert fd is not None  # the root always is
        for part in reversed(wanted):
            fd = self._make_in(fd, part, made)
        return fd

    def _make_in(self, parent: int, path: str, made: list[str]) -> int:
        try:
            with suppress(FileExistsError):
                self._disk.make_directory(parent, paths.name(path), 0o777)
                made.append(path)
            fd = open_in(parent, paths.name(path))
            try:
                # One just made may have the number of another that stood there before.
                if path in made or not self._survives(path, fd):
                    self._disk.sync(parent)
                    self._durable.add((path, os.fstat(fd).st_ino))
            except BaseException:
                os.close(fd)
                raise
            return fd
        finally:
            os.close(parent)

    def _unmake(self, made: list[str]) -> None:
        """Nobody else's command works below them, as they are claimed; what a stranger has put
        there meanwhile stays, and the directory with it."""
        for path in reversed(made):
            with suppress(OSError), self._beneath.directory(paths.folder(path)) as parent:
                self._disk.remove_directory(parent, paths.name(path))
