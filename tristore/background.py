"""Background work for the length of an `async with` block."""

import asyncio
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Background(ABC):
    """Begins on entering, works until leaving."""

    _task: asyncio.Task[None]

    async def _begin(self) -> None:
        """What must be there before anyone uses the block."""
        return None

    @abstractmethod
    async def _work(self) -> None: ...

    async def __aenter__(self) -> Self:
        await self._begin()
        self._task = asyncio.create_task(self._work(), name=type(self).__name__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        # More than once, since a library may lose the word: see cancellation.py.
        while not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=0.5)
