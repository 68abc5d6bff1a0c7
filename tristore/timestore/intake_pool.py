"""Warm intake processes: the API hands them bodies and imports none of what reads them."""

import asyncio
import json
import logging
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from tristore.errors import (
    InvalidRequest,
    InvalidRows,
    StorageFull,
    TooLarge,
    TristoreError,
    Unavailable,
    Violation,
)

_ERRORS: dict[str, type[TristoreError]] = {
    kind.__name__: kind for kind in (TooLarge, StorageFull, InvalidRequest)
}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    processes: int
    seconds: float
    memory_mb: int


@dataclass(frozen=True, slots=True)
class Files:
    """Open files: the body, and where the Parquet goes."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class _Child:
    process: subprocess.Popen[bytes]
    line: socket.socket = field(repr=False)

    @classmethod
    def start(cls, memory_mb: int) -> "_Child":
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tristore.timestore.intake"),
                    *(str(theirs.fileno()), str(memory_mb)),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                # Our own environment holds passwords.
                env={},
            )
        return cls(process, ours)

    def ask(self, request: dict[str, Any], files: Files, seconds: float) -> dict[str, Any]:
        """In a thread of its own; after an error nobody else touches the line."""
        try:
            return self._ask(request, files, seconds)
        except BaseException:
            self.line.close()
            raise

    def _ask(self, request: dict[str, Any], files: Files, seconds: float) -> dict[str, Any]:
        self.line.settimeout(seconds)
        socket.send_fds(self.line, [json.dumps(request).encode()], [files.source, files.target])
        answer = bytearray()
        while not answer.endswith(b"\n"):
            if not (piece := self.line.recv(1024 * 1024)):
                raise ConnectionError
            answer += piece
        found: dict[str, Any] = json.loads(answer)
        return found

    def kill(self) -> None:
        """Whoever is asking hears it as the end of the line."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.kill()
        self.line.close()


class IntakePool:
    """Processes start when they are first needed and then stay."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.processes)
        self._idle: list[_Child] = []

    async def run(self, request: dict[str, Any], files: Files) -> dict[str, Any]:
        """What the process says of the body; a body it refuses is raised."""
        async with self._slots:
            child = await self._child()
            try:
                answer = await asyncio.to_thread(
                    child.ask,
                    {**request, "seconds": self._limits.seconds},
                    files,
                    self._limits.seconds,
                )
            except OSError as error:
                child.kill()
                raise self._told(child, error) from error
            except BaseException:
                child.kill()
                raise
            self._keep(child, spent=answer.pop("spent", True))
        return _checked(answer)

    async def aclose(self) -> None:
        for child in self._idle:
            child.end()
        self._idle.clear()

    async def _child(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.process.poll() is None:
                return child
            child.end()
        return await asyncio.to_thread(_Child.start, self._limits.memory_mb)

    def _keep(self, child: _Child, *, spent: bool) -> None:
        if spent:
            child.end()
        else:
            self._idle.append(child)

    def _told(self, child: _Child, error: OSError) -> TristoreError:
        if isinstance(error, TimeoutError):
            return TooLarge(
                f"reading the body took longer than {self._limits.seconds:g} s; send less at a time"
            )
        _log.error("an intake process ended with %s", child.process.returncode)
        if child.process.returncode < 0:
            return InvalidRequest(
                f"the body could not be read within {self._limits.memory_mb} MiB; "
                "send less at a time"
            )
        return Unavailable("the body could not be read; the reason is in the server's log")


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    if "violations" in answer:
        raise InvalidRows([Violation(**violation) for violation in answer["violations"]])
    if "error" in answer:
        raise _ERRORS.get(answer["error"], InvalidRequest)(answer["message"])
    return answer
