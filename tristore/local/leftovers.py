"""Processes of an embedded server that are still there from an earlier run."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from signal import SIGKILL, Signals

import psutil

Match = Callable[[psutil.Process], bool]


def find(match: Match) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if match(process):
                yield process


def stop(match: Match, sig: Signals, timeout: float) -> None:
    """Asks every match with `sig`, kills what is left after `timeout` seconds."""
    found = list(find(match))
    for step in (sig, SIGKILL):
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(step)
        found = _left(found, timeout)


def _left(processes: list[psutil.Process], timeout: float) -> list[psutil.Process]:
    deadline = time.monotonic() + timeout
    while (alive := [p for p in processes if _lives(p)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return alive


def _lives(process: psutil.Process) -> bool:
    """A zombie holds nothing any more, and in a container there may be nobody to reap it."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
