"""Hints that something changed under a folder: what is hinted at is looked at, never believed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

Loss = Literal["overflow", "exhausted", "gone"]
# Changes of one moment belong together: a file is made, written, closed and renamed in one go.
GATHER_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Hints:
    """Paths from the watched folder that may have changed.

    `lost` says that there were more: the system's queue ran over, it has no watches left for
    every directory, or the folder itself is gone.
    """

    paths: set[str]
    lost: Loss | None = None


class Notices(ABC):
    """Watches from entering the block until it ends; `next` is called by one task."""

    @property
    def whole(self) -> bool:
        """Whether every directory is watched."""
        return True

    @abstractmethod
    async def next(self) -> Hints:
        """Waits for the next change."""

    @abstractmethod
    async def open(self) -> None:
        """Raises OSError where the folder cannot be watched at all."""

    @abstractmethod
    async def close(self) -> None: ...

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()
