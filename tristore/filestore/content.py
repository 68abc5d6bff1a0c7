"""What every kind of mount can do with content: the interface behind which the backends stand."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Literal, NamedTuple

EntryKind = Literal["file", "directory", "other", "unreadable"]


class Fingerprint(NamedTuple):
    """How content looks from outside; equal means unchanged, whoever wrote it."""

    size: int
    inode: int | None = None
    mtime_ns: int | None = None
    etag: str | None = None


class Entry(NamedTuple):
    """Something found on a mount.

    `other` is what the filestore does not track: links, devices, pipes, names it cannot hold.
    `unreadable` is a directory that could not be listed, told after the entry of the directory
    itself: nothing is known about what lies under it, so nothing there may be called missing.
    """

    path: str
    kind: EntryKind
    fingerprint: Fingerprint


class Staged(NamedTuple):
    """Content that waits, invisible, to be published under its token.

    `checksum` is None only for a copy that the store makes by itself when it is published: it is
    the source's. `fingerprint` is what `publish` will answer, where that is known beforehand.
    """

    token: str
    size: int
    checksum: str | None
    fingerprint: Fingerprint | None


class Blobs(ABC):
    """The content of one mount, by paths that `paths.check` has passed; the root is "".

    One object per mount and process; any number of tasks may use it at once. Errors are of
    `tristore.errors` only: ContentGone, ContentConflict, ContentUnreadable, StagingLost,
    StorageFull, StorageRefused, ReadOnly, Unavailable. Tokens are made by the caller (letters,
    digits, "-"), one per command and file.
    """

    # False: directories are only nodes; the store itself has none.
    supports_directories: bool

    @abstractmethod
    async def probe(self) -> None:
        """Raises MountRefused unless the store can keep the filestore's promises.

        Called once, when the mount is made; may write and remove a little under `.tristore`.
        """

    @abstractmethod
    async def stage(self, token: str, content: AsyncIterator[bytes], path: str) -> Staged:
        """Takes the whole content in, hashed on the way, durable where the store allows it.

        `path` is where it will be published: a large object grows there, invisible, part by part.
        Whatever ends it early, also an error of the iterator, leaves nothing staged.
        """

    @abstractmethod
    async def stage_copy(self, token: str, source: str, path: str) -> Staged:
        """Stages the content of another path of this mount, for `path`."""

    @abstractmethod
    async def publish(
        self, token: str, path: str, *, replaces: Fingerprint | None = None
    ) -> Fingerprint:
        """Makes staged content visible in one step, durably, with its missing parents.

        `replaces=None`: nothing may stand at the path. Otherwise what stands there must still
        look like that. ContentConflict when not; then the content stays staged. Unavailable leaves
        open whether it happened. After a crash the same call answers the fingerprint if the store
        can tell that it had happened (S3), else StagingLost: the caller looks at the path.
        """

    @abstractmethod
    async def confirm(self, path: str) -> None:
        """What stands at the path, or that nothing does, survives a power cut from now on.

        For recovery, which finds a step done and cannot know whether it was made durable.
        """

    @abstractmethod
    async def discard(self, token: str) -> None:
        """Forgets what was staged or removed under the token; right also if there is nothing."""

    @abstractmethod
    async def stat(self, path: str) -> Entry | None: ...

    @abstractmethod
    async def checksum(self, path: str) -> tuple[str, Fingerprint]:
        """`sha256:<hex>` of the bytes as they stand now, read in full."""

    @abstractmethod
    async def read(
        self, path: str, start: int = 0, stop: int | None = None
    ) -> tuple[Fingerprint, AsyncIterator[bytes]]:
        """The bytes from `start` up to, not including, `stop`.

        The iterator raises rather than end early when the file shrinks or is replaced meanwhile.
        """

    @abstractmethod
    async def make_directory(self, path: str) -> Fingerprint:
        """With its parents; right also if it exists. ContentConflict if a file is in the way."""

    @abstractmethod
    async def move(self, source: str, target: str) -> Fingerprint:
        """Never replaces. A directory moves whole; where `supports_directories` is false only
        files can move, and a move cut short is finished by calling it again."""

    @abstractmethod
    async def remove(self, path: str, token: str, expected: Fingerprint | None = None) -> None:
        """Takes a file or a whole directory out of sight; right also if it is gone.

        `expected` is how a file must still look (ContentConflict when not); None for directories.
        Where there is a trash, `discard(token)` frees the space; `sweep` does it otherwise.
        """

    @abstractmethod
    def walk(self, prefix: str = "", after: str | None = None) -> AsyncIterator[list[Entry]]:
        """Everything under a directory, itself left out, in batches of up to 1,000.

        Paths come in the order in which `COLLATE "C"` sorts them, so the walk can be merged with
        a page of nodes; `after` resumes behind a path. What changes meanwhile may be seen or not.
        """

    @abstractmethod
    def list_directory(self, path: str = "") -> AsyncIterator[list[Entry]]:
        """Only what lies directly in the directory, in the order of names."""

    @abstractmethod
    async def sweep(self, older_than_seconds: float, keep: set[str]) -> int:
        """Forgets staged and removed content of that age whose token is not kept; says how many."""

    @abstractmethod
    async def aclose(self) -> None: ...
