"""The embedded Postgres: a real server on a loopback port, with its data in one folder."""

import secrets
import signal
from pathlib import Path
from typing import ClassVar

from tristore.local import port, private_file
from tristore.local.postgres_cluster import DATABASE, USER, Cluster
from tristore.local.server import EmbeddedServer

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "fsync": "on",
    "idle_in_transaction_session_timeout": "60s",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}


class EmbeddedPostgres(EmbeddedServer):
    name = "postgres"
    title = "Postgres"
    # Fast shutdown: open transactions are rolled back, the data is left clean.
    stop_signal = signal.SIGINT
    # With five seconds of the parts and one and a half of Redis, a platform ends within ten.
    stop_seconds = 3.0
    settings: ClassVar[dict[str, str]] = SETTINGS
    _cluster: Cluster | None = None

    def start(self) -> str:
        private_file.make_folder(self.folder)
        password = private_file.keep(self.folder / "password", lambda: secrets.token_hex(24))
        self._cluster = cluster = Cluster(self.folder, self.log)
        cluster.ensure(password)
        cluster.clear_leftovers(self.stop_seconds)
        number = port.reserve(self.title, self.port_file)
        settings = {**self.settings, "port": str(number), "cluster_name": cluster.name}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        self._child = child = cluster.start("postgres", *options, data=cluster.data)
        status = cluster.data / "postmaster.pid"
        self._await_ready(child, number, lambda: _says_ready(status, child.pid))
        # A server that does not prove it knows the password gets nothing from the client.
        return f"{_url(password, number)}?require_auth=scram-sha-256"

    def client_url(self) -> str:
        """The same database for clients that do not know libpq's newer options."""
        password = (self.folder / "password").read_text().strip()
        return _url(password, int(self.port_file.read_text()))

    def stop(self) -> None:
        if self._cluster:
            self._cluster.abandon()
        super().stop()


def _url(password: str, number: int) -> str:
    return f"postgresql://{USER}:{password}@127.0.0.1:{number}/{DATABASE}"


def _says_ready(status: Path, pid: int) -> bool:
    try:
        lines = status.read_text().splitlines()
    except FileNotFoundError:
        return False
    return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"
