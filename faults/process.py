"""A part of the platform as a process that a scenario may stop, resume and kill."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.support.warm import Program, Streams

END_SECONDS = 10


class Process:
    def __init__(self, process: Program, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float = 30) -> int:
        return self._process.wait(seconds)

    def output(self) -> str:
        return self._log.read_text("utf-8", errors="replace")

    def says(self, words: str) -> bool:
        return words in self.output()

    def was_killed(self) -> bool:
        return self.poll() == -signal.SIGKILL

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def is_stopped(self) -> bool:
        """By itself, at a failpoint, or by `stop`."""
        return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def release(self) -> None:
        """From the failpoint that holds it."""
        os.kill(self.pid, signal.SIGUSR1)

    def end(self) -> None:
        """Asks it to end, and kills it if it does not."""
        if self.poll() is not None:
            return
        self._process.terminate()
        self.resume()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def running(argv: Sequence[str], env: Mapping[str, str], log: Path) -> Iterator[Process]:
    """`python -m <argv>` for the length of the block, with what it prints in `log`."""
    log.touch()
    process = Process(Program(argv, env, Streams(stdout=log, stderr=log)), log)
    try:
        yield process
    finally:
        process.end()
