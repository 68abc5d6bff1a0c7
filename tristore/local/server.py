"""What the embedded servers have in common: a folder, a log, a kept port, and one child process."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import ClassVar, Self

from tristore.errors import StartRefused
from tristore.local import port
from tristore.local.child import Child

# Long, because what a crash left behind is read first.
READY_SECONDS = 120.0


class EmbeddedServer(ABC):
    """Owns `folder`; one at a time per folder, which the caller sees to."""

    name: ClassVar[str]
    title: ClassVar[str]
    stop_signal: ClassVar[Signals]
    stop_seconds: ClassVar[float]

    def __init__(self, folder: Path, log: Path | None = None) -> None:
        self.folder = folder.absolute()
        self.log = log or self.folder / f"{self.name}.log"
        self.port_file = self.folder / "port"
        self._child: Child | None = None

    @abstractmethod
    def start(self) -> str:
        """Returns the URL once the server takes connections; the next start finds its data."""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def poll(self) -> int | None:
        """None while it runs."""
        return self._child.poll() if self._child else 0

    def stop(self) -> None:
        """May be called from another thread while `start` is at work; that then fails."""
        if child := self._child:
            child.stop(self.stop_seconds, self.stop_signal)
            self._child = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _await_ready(self, child: Child, number: int, says_ready: Callable[[], bool]) -> None:
        """Learns it from what our own child writes: asking the port might ask a stranger."""
        deadline = time.monotonic() + READY_SECONDS
        while not says_ready():
            if child.poll() is not None:
                self._child = None
                raise self._why_it_ended(number)
            if time.monotonic() > deadline:
                self.stop()
                raise StartRefused(
                    f"{self.title} was not ready after {READY_SECONDS:.0f} s; see {self.log}"
                )
            time.sleep(0.02)

    def _why_it_ended(self, number: int) -> StartRefused:
        if not port.is_free("127.0.0.1", number):
            return port.held(self.title, number, self.port_file)
        return StartRefused(f"{self.title} ended while starting; its reason is in {self.log}")
