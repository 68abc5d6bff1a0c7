"""Safekeeping: which of a buffer's events also stand in the spool file, if there is one."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tristore.errors import BufferFull
from tristore.events.sdk.buffer import Buffer
from tristore.events.sdk.spool import Spool

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Safekeeping:
    """The file is written only during an outage and emptied when all it holds is sent; a crash
    in between sends some events twice, which the log recognises by their ids."""

    def __init__(self, buffer: Buffer, path: Path | None) -> None:
        self._buffer = buffer
        self._spool = Spool(path) if path else None
        self._writing = asyncio.Lock()
        self._secured = 0  # up to this number the file holds what is unsent
        self._afresh = False  # the file must be written anew before it is added to

    @property
    def path(self) -> Path | None:
        return self._spool.path if self._spool else None

    async def open(self) -> int:
        """Fills the buffer with what the file holds."""
        if self._spool is None:
            return 0
        found = await _finished(self._spool.open)
        self._secured = self._buffer.append(found)
        return len(found)

    def start_afresh(self) -> None:
        """At the start of an outage: what was sent since the last one leaves the file."""
        self._afresh = True

    async def secure(self, number: int) -> None:
        """Returns when the event with this number is sent or on disk; callers share a write."""
        if self._spool is None:
            return
        async with self._writing:
            if number <= max(self._secured, self._buffer.gone):
                return
            await self._write(self._spool)

    async def _write(self, spool: Spool) -> None:
        last, afresh = self._buffer.added, self._afresh
        bodies = self._buffer.after(self._buffer.gone if afresh else self._secured)
        try:
            await _finished(spool.replace if afresh else spool.append, bodies)
        except OSError as error:
            # What the disk holds after a failed write is unknown: never add to it.
            self._afresh = True
            raise BufferFull(
                f"the buffer file {spool.path} cannot be written ({error.strerror}); the event is "
                "held in memory only, and sent if the bus returns before this process ends"
            ) from error
        self._secured, self._afresh = last, False

    async def forget(self) -> None:
        """Empties the file once all it holds is sent."""
        if self._spool is None or not 0 < self._secured <= self._buffer.gone:
            return
        async with self._writing:
            if self._secured > self._buffer.gone:
                return
            try:
                await _finished(self._spool.clear)
            except OSError as error:
                self._afresh = True
                _report("cannot empty the buffer file", self._spool, error)
            self._secured = 0

    async def set_aside(self, body: bytes) -> None:
        """Beside the file, for a person: the bus will never take it."""
        if self._spool is None:
            return
        try:
            await _finished(self._spool.set_aside, body)
        except OSError as error:
            _report("cannot keep a refused event", self._spool, error)

    async def close(self) -> None:
        """What is unsent is on disk before the file is let go."""
        if self._spool is None:
            return
        try:
            if len(self._buffer):
                await self.secure(self._buffer.added)
            await self.forget()
        finally:
            await _finished(self._spool.close)


async def _finished(call: Callable[..., T], *given: Any) -> T:
    """Runs it in a thread to its end, also when cancelled: nobody else may touch the file yet."""
    running = asyncio.ensure_future(asyncio.to_thread(call, *given))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def _report(what: str, spool: Spool, error: OSError) -> None:
    _log.error(what, extra={"file": str(spool.path), "error": error.strerror})
