"""One lock a table: its sink and its upkeep, threads of one driver, do not commit at once."""

import threading
from collections import defaultdict


class TableLocks:
    def __init__(self) -> None:
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def of(self, table: str) -> threading.Lock:
        with self._guard:
            return self._locks[table]
