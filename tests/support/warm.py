"""Processes forked from one that has the platform imported: Python anew takes a second each."""

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
# One list for all who use it: the process is started once, with the last list it was given.
CONTEXT.set_forkserver_preload(
    [
        "tests.support.filestore_child",
        "tests.support.upkeep_child",
        "faults.publisher",
        "tristore.cli",
        "tristore.http.exposure",
        "tristore.http.protocol",
        "tristore.http.sockets",
        "tristore.server",
        "tristore.wiring",
        "uvicorn",
    ]
)


@dataclass(frozen=True)
class Streams:
    """The files a process reads and writes; without one, it has nothing to read, and writes
    where the tests write."""

    stdin: Path | None = None
    stdout: Path | None = None
    stderr: Path | None = None


class Program:
    """`python -m <argv>` in the environment given, with the names of `subprocess.Popen`."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], streams: Streams | None = None
    ) -> None:
        given = (list(argv), dict(env), streams or Streams())
        self._process = CONTEXT.Process(target=_run, args=given)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float | None = None) -> int:
        self._process.join(seconds)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", seconds or 0)
        return code

    def terminate(self) -> None:
        if self.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        if self.poll() is None:
            self._process.kill()


def _run(argv: list[str], env: dict[str, str], streams: Streams) -> None:
    os.environ.clear()
    os.environ.update(env)
    if streams.stdin:
        sys.stdin = open(streams.stdin, encoding="utf-8")
    for path, number in ((streams.stdout, 1), (streams.stderr, 2)):
        if path:
            os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), number)
    sys.path[1:1] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = argv
    runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
