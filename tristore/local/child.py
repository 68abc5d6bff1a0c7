"""A child process that cannot outlive its parent, not even after kill -9 of the parent."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")


@dataclass(frozen=True, slots=True)
class Owner:
    """The unprivileged user a child of root runs as."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Command:
    """What to run; `env=None` passes our own environment on."""

    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] | None = None
    cwd: Path | None = None
    owner: Owner | None = None
    stdin: int = subprocess.DEVNULL
    pass_fds: tuple[int, ...] = ()
    death_signal: signal.Signals = signal.SIGKILL


class Child:
    """A running command, in a session of its own so that Ctrl-C reaches only the parent."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._lock = threading.Lock()
        if threading.current_thread() is threading.main_thread():
            self._process = _spawn(command)
        else:
            self._process = _lasting_thread().submit(_spawn, command).result()

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs.

        What it left running in its process group is killed before its exit is collected:
        until then the kernel gives the group's number to nobody else.
        """
        with self._lock:
            if self._process.returncode is None and self._has_exited():
                self._kill_group()
            return self._process.poll()

    def wait(self, timeout: float = math.inf) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.command.argv, timeout)
            time.sleep(0.01)
        return code

    def stop(self, timeout: float, sig: signal.Signals = signal.SIGTERM) -> int:
        """Asks with `sig`, and kills what still runs after `timeout` seconds."""
        with self._lock:
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, sig)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.wait()

    def kill(self) -> None:
        with self._lock:
            if self._process.returncode is None:
                self._kill_group()

    def _has_exited(self) -> bool:
        try:
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, look) is not None
        except ChildProcessError:
            # Started with SIGCHLD ignored, and so the kernel has collected it already.
            return False

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


@cache
def _lasting_thread() -> ThreadPoolExecutor:
    # The kernel counts the death of the *thread* that forked as the death of the parent,
    # so a child asked for by a short-lived worker thread must be forked by one that stays.
    return ThreadPoolExecutor(1, "child-spawner")


def _spawn(command: Command) -> subprocess.Popen[bytes]:
    owner = f"{command.owner.uid}:{command.owner.gid}" if command.owner else "-"
    leash = [sys.executable, "-I", "-S", str(LEASH)]
    command.log.parent.mkdir(parents=True, exist_ok=True)
    with open(command.log, "ab", opener=_private) as log:
        return subprocess.Popen(
            [*leash, str(os.getpid()), str(int(command.death_signal)), owner, *command.argv],
            stdin=command.stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=command.env,
            cwd=command.cwd,
            pass_fds=command.pass_fds,
            start_new_session=True,
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
