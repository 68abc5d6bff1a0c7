"""Progress bars of the filestore's commands: on a terminal, for work that takes a while."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TransferSpeedColumn,
)

_PATIENCE_SECONDS = 1.0


@contextmanager
def bytes_bar(label: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Yields what is told of every piece."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with _Bar(Progress(*columns, TransferSpeedColumn(), console=_console(), transient=True)) as bar:
        task = bar.progress.add_task(label, total=total)

        def advance(count: int) -> None:
            bar.progress.advance(task, count)
            bar.appear(quiet)

        yield advance


@contextmanager
def counts_bar(label: str, *, quiet: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yields what is told of every look at a journal entry or a job."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with _Bar(Progress(*columns, console=_console(), transient=True)) as bar:
        task = bar.progress.add_task(label)

        def look(found: dict[str, Any]) -> None:
            counted = ", ".join(f"{name} {count:,}" for name, count in _counts(found))
            bar.progress.update(task, description=f"{label}  {counted}")
            bar.appear(quiet)

        yield look


def _counts(found: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, count in (found.get("progress") or {}).items():
        if isinstance(count, int) and not isinstance(count, bool):
            yield name, count


def _console() -> Console:
    return Console(stderr=True)


class _Bar:
    """Shows itself once the work has lasted a second."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._begun = time.monotonic()
        self._shown = False

    def appear(self, quiet: bool) -> None:
        late = time.monotonic() - self._begun > _PATIENCE_SECONDS
        if late and not (self._shown or quiet) and self.progress.console.is_terminal:
            self.progress.start()
            self._shown = True

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self.progress.stop()
