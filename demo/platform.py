"""The platform of the demo: `tristore up` in a temporary folder, asked like any client would."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRISTORE = [sys.executable, "-m", "tristore"]


@dataclass(frozen=True, slots=True)
class Platform:
    folder: Path

    def status(self) -> dict[str, Any] | None:
        command = [*TRISTORE, "status", "--json", "--data-dir", str(self.folder)]
        answer = subprocess.run(command, capture_output=True, text=True)
        return json.loads(answer.stdout) if answer.returncode == 0 else None

    def kill(self, part: str) -> int:
        """Kills a part the hard way and returns its pid; the supervisor brings it back."""
        status = self.status()
        assert status is not None
        os.kill(pid := status["pids"][part], signal.SIGKILL)
        return int(pid)


@contextmanager
def running() -> Iterator[Platform]:
    with tempfile.TemporaryDirectory(prefix="tristore-demo-") as folder:
        platform = Platform(Path(folder) / "data")
        command = [*TRISTORE, "up", "--data-dir", str(platform.folder), "--port", str(_free_port())]
        # A short lock, so that the killed worker's jobs are taken over while one watches.
        environment = {**os.environ, "TRISTORE_EVENTS__LOCK_SECONDS": "3"}
        environment["TRISTORE_TIMESTORE__LIFECYCLE_SECONDS"] = "1"
        with open(Path(folder) / "up.log", "wb") as log:
            up = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
            try:
                wait_until(lambda: up.poll() is not None or _ready(platform), "the platform")
                if up.poll() is not None:
                    raise SystemExit((Path(folder) / "up.log").read_text())
                yield platform
            finally:
                up.send_signal(signal.SIGINT)
                up.wait(15)


def wait_until(ask: Callable[[], object], what: str, seconds: float = 80) -> None:
    deadline = time.monotonic() + seconds
    while not ask():
        if time.monotonic() > deadline:
            raise SystemExit(f"gave up waiting for {what}")
        time.sleep(0.1)


def _ready(platform: Platform) -> bool:
    status = platform.status()
    return bool(status and status["ready"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
