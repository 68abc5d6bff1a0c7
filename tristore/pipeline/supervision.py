"""A streaming query of the driver, started again after an outage with growing pauses."""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tristore.errors import CheckpointMismatch, Transient

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
# Spark gives the Python process that plans a source ten seconds to start, whatever else the machine
# has to do; nothing has happened then.
_SLOW_START, _STARTS = "Python worker failed to connect back", 5
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Line:
    """`writer` makes the query anew, with all its checks; what trying again cannot heal ends the
    driver."""

    name: str
    writer: Callable[[], DataStreamWriter]
    every_seconds: float
    _query: StreamingQuery | None = None
    _pause: float = _SHORTEST_PAUSE
    _begun: float = field(default_factory=time.monotonic)
    _not_before: float = 0

    def step(self) -> None:
        """Looked after again and again by the driver's one loop."""
        if self._query is not None and self._query.isActive:
            return
        try:
            self._settle()
            if time.monotonic() >= self._not_before:
                self._start()
        except (StreamingQueryException, psycopg.OperationalError, Transient) as error:
            self._postpone(error)

    def stop(self) -> None:
        if self._query is not None and self._query.isActive:
            self._query.stop()

    def _start(self) -> None:
        self._begun = time.monotonic()
        every = f"{round(self.every_seconds * 1000)} milliseconds"
        self._query = self.writer().trigger(processingTime=every).start()

    def _settle(self) -> None:
        ended, self._query = self._query, None
        if ended is not None:
            finish(ended)

    def _postpone(self, error: Exception) -> None:
        if time.monotonic() - self._begun > _LONGEST_PAUSE:
            self._pause = _SHORTEST_PAUSE
        _log.error("query %s failed, next try in %.0f s: %s", self.name, self._pause, error)
        self._not_before = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)


def drain(writer: Callable[[], DataStreamWriter]) -> None:
    """Runs a query over what there is now."""
    for tries_left in reversed(range(_STARTS)):
        try:
            return finish(writer().trigger(availableNow=True).start())
        except StreamingQueryException as error:
            if _SLOW_START not in str(error) or not tries_left:
                raise


def finish(query: StreamingQuery) -> None:
    """Waits for the end of a query; raises what ended it."""
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        # Spark hands over only the text of what was raised in its Python workers.
        if found := re.search(r"CheckpointMismatch: (.+)", str(error)):
            raise CheckpointMismatch(found.group(1)) from error
        raise
