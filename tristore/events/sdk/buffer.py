"""The unsent events of a publisher, in order, bounded by number and bytes."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice


class Buffer:
    """Every event ever appended has a number, from 1; `gone` of them have left at the front."""

    def __init__(self, most_events: int, most_bytes: int) -> None:
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._bodies: deque[bytes] = deque()
        self.size = 0
        self.gone = 0

    def __len__(self) -> int:
        return len(self._bodies)

    @property
    def added(self) -> int:
        return self.gone + len(self._bodies)

    def fits(self, bodies: Sequence[bytes]) -> bool:
        """An empty buffer takes anything: nothing may be too large for ever."""
        if not self._bodies:
            return True
        size = sum(map(len, bodies))
        return (
            len(self._bodies) + len(bodies) <= self._most_events
            and self.size + size <= self._most_bytes
        )

    def append(self, bodies: Sequence[bytes]) -> int:
        """The number of the last one."""
        self._bodies.extend(bodies)
        self.size += sum(map(len, bodies))
        return self.added

    def first(self, most_events: int, most_bytes: int) -> list[bytes]:
        """What is sent next; at least one, if there is one."""
        return next(packed(self._bodies, most_events, most_bytes), [])

    def after(self, number: int) -> list[bytes]:
        """The events that came after the one with this number and are still here."""
        count = min(self.added - number, len(self._bodies))
        return list(islice(reversed(self._bodies), max(count, 0)))[::-1]

    def drop(self, count: int) -> None:
        for _ in range(count):
            self.size -= len(self._bodies.popleft())
        self.gone += count


def packed(bodies: Iterable[bytes], most_events: int, most_bytes: int) -> Iterator[list[bytes]]:
    """The events in groups of bounded number and size, in order; a large one goes alone."""
    group: list[bytes] = []
    size = 0
    for body in bodies:
        if group and (len(group) >= most_events or size + len(body) > most_bytes):
            yield group
            group, size = [], 0
        group.append(body)
        size += len(body) + 1
    if group:
        yield group
