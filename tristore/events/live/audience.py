"""Who listens to the tail: readers grouped by filter, so that an event wakes only its takers.

A reader that is left asleep has, by that, seen everything up to the tail's position.
"""

import asyncio
from collections.abc import Iterator, Sequence

from tristore.errors import TristoreError
from tristore.events.live.frame import Frame
from tristore.events.type_filter import TypeFilter

_REMEMBER_TYPES = 1000


class Reader:
    """A filter and a position. `fail` ends its pages with an error, from wherever."""

    __slots__ = ("_woken", "asleep", "failure", "position", "wanted")

    def __init__(self, wanted: TypeFilter, position: int) -> None:
        self.wanted = wanted
        self.position = position
        self.asleep = False
        self.failure: TristoreError | None = None
        self._woken = asyncio.Event()

    def fail(self, error: TristoreError) -> None:
        self.failure = error
        self._woken.set()

    def wake(self, position: int) -> None:
        # Never backwards: a reader may have started ahead of what the tail has read yet.
        self.position = max(self.position, position)
        self.asleep = False
        self._woken.set()

    async def sleep(self, seconds: float | None) -> bool:
        """False if nobody woke it in time."""
        if self.failure:
            return True
        self._woken.clear()
        self.asleep = True
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            pass  # asked again below: a wake-up may have come in the same moment
        finally:
            self.asleep = False
        return self._woken.is_set()


class Audience:
    def __init__(self) -> None:
        self._groups: dict[TypeFilter, set[Reader]] = {}
        # By event type, the filters that take it; emptied whenever a filter comes or goes.
        self._takers: dict[str, list[TypeFilter]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Reader]:
        return (reader for group in self._groups.values() for reader in group)

    def add(self, reader: Reader) -> None:
        if reader.wanted not in self._groups:
            self._takers.clear()
        self._groups.setdefault(reader.wanted, set()).add(reader)
        self._size += 1

    def discard(self, reader: Reader) -> None:
        group = self._groups[reader.wanted]
        group.discard(reader)
        self._size -= 1
        if not group:
            del self._groups[reader.wanted]
            self._takers.clear()

    def wake(self, frames: Sequence[Frame]) -> None:
        """Wakes each sleeping taker just before the first frame it wants."""
        first: dict[TypeFilter, int] = {}
        for frame in frames:
            for wanted in self._takers_of(frame.type):
                first.setdefault(wanted, frame.sequence)
        for wanted, sequence in first.items():
            for reader in self._groups[wanted]:
                if reader.asleep:
                    reader.wake(sequence - 1)

    def tell(self, position: int) -> None:
        """Wakes the sleepers that do not know yet how far the log has come without them."""
        for reader in self:
            if reader.asleep and reader.position < position:
                reader.wake(position)

    def fail(self, error: TristoreError) -> None:
        for reader in self:
            reader.fail(error)

    def _takers_of(self, type: str) -> list[TypeFilter]:
        if (known := self._takers.get(type)) is None:
            if len(self._takers) >= _REMEMBER_TYPES:
                self._takers.clear()
            known = self._takers[type] = [wanted for wanted in self._groups if wanted(type)]
        return known
