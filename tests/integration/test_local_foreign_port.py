"""A port held by somebody else is refused, and that somebody hears nothing from us."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tristore.errors import StartRefused
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis

CLEARTEXT_PASSWORD_PLEASE = b"R" + (8).to_bytes(4, "big") + (3).to_bytes(4, "big")


class Decoy:
    """A stranger on a port: answers every first message, and keeps all it is told."""

    def __init__(self, answer: bytes = b"") -> None:
        self.connections = 0
        self.heard = b""
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                first = connection.recv(4096)
                if first == b"stop":
                    return
                self.connections += 1
                self.heard += first
                connection.sendall(self._answer)
                while more := connection.recv(4096):
                    self.heard += more

    def close(self) -> None:
        """What came before has been counted when this returns."""
        if not self._thread.is_alive():
            return
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"stop")
        self._thread.join()
        self._socket.close()


@pytest.fixture
def decoy() -> Iterator[Decoy]:
    made = Decoy()
    yield made
    made.close()


@pytest.mark.parametrize("kind", [EmbeddedPostgres, EmbeddedRedis])
def test_a_held_port_is_refused_without_a_word_to_its_holder(
    kind: type[EmbeddedPostgres] | type[EmbeddedRedis], decoy: Decoy, tmp_path: Path
) -> None:
    with kind(tmp_path) as server:
        server.start()
    (tmp_path / "port").write_text(str(decoy.port))
    with kind(tmp_path) as server:
        with pytest.raises(StartRefused, match=f"{decoy.port}.*held by another program.*delete"):
            server.start()
        assert server.pid is None
    decoy.close()
    assert (decoy.connections, decoy.heard) == (0, b"")


@pytest.mark.parametrize("kind", [EmbeddedPostgres, EmbeddedRedis])
def test_a_port_taken_at_the_last_moment_is_refused_too(
    kind: type[EmbeddedPostgres] | type[EmbeddedRedis],
    decoy: Decoy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "port").write_text(str(decoy.port))
    monkeypatch.setattr("tristore.local.port.reserve", lambda server, file: decoy.port)
    with kind(tmp_path) as server, pytest.raises(StartRefused, match="held by another program"):
        server.start()
    decoy.close()
    assert (decoy.connections, decoy.heard) == (0, b"")


def test_a_server_that_took_the_place_of_ours_does_not_learn_the_password(tmp_path: Path) -> None:
    with EmbeddedPostgres(tmp_path) as server:
        url = server.start()
    decoy = Decoy(CLEARTEXT_PASSWORD_PLEASE)
    port, password = ((tmp_path / name).read_text().strip() for name in ("port", "password"))
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url.replace(f":{port}/", f":{decoy.port}/") + "&sslmode=disable")
    decoy.close()
    assert decoy.connections >= 1
    assert password.encode() not in decoy.heard
