"""A part of the platform (api, relay, …) as a process of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tristore.local.child import Child, Command

STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    argv: Sequence[str]


class PartProcess:
    def __init__(self, part: Part, log: Path, env: Mapping[str, str]) -> None:
        self.name = part.name
        self._command = Command(part.argv, log, env)
        self._child: Child | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def poll(self) -> int | None:
        """None while it runs."""
        return self._child.poll() if self._child else 0

    def start(self) -> None:
        self._child = Child(self._command)

    def stop(self) -> None:
        if self._child:
            self._child.stop(STOP_SECONDS)
            self._child = None
