"""Many small requests from several connections, by a client that costs next to nothing."""

import socket
import threading
import time
from collections.abc import Callable, Iterable

from bench.mounted import TOKEN

_HEAD = f"Host: bench\r\nAuthorization: Bearer {TOKEN}\r\n"


def request(method: str, path: str, body: bytes, *lines: str) -> bytes:
    more = "".join(f"{line}\r\n" for line in (*lines, f"Content-Length: {len(body)}"))
    return f"{method} {path} HTTP/1.1\r\n{_HEAD}{more}\r\n".encode() + body


def load(port: int, clients: int, requests: Callable[[int], Iterable[bytes]]) -> float:
    """Seconds until every client has had a good answer to each of its requests."""
    failures: list[str] = []

    def play(number: int) -> None:
        try:
            with socket.create_connection(("127.0.0.1", port)) as wire:
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for sent in requests(number):
                    _exchange(wire, sent)
        except (OSError, RuntimeError) as error:
            failures.append(str(error))

    return parallel(clients, play, failures)


def parallel(clients: int, play: Callable[[int], None], failures: list[str]) -> float:
    threads = [threading.Thread(target=play, args=(number,)) for number in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    if failures:
        raise SystemExit(f"a measurement failed: {failures[0]}")
    return seconds


def _exchange(wire: socket.socket, sent: bytes) -> None:
    wire.sendall(sent)
    received = wire.recv(65536)
    while b"\r\n\r\n" not in received:
        received += _more(wire)
    head, _, body = received.partition(b"\r\n\r\n")
    if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
        raise RuntimeError(received[:500].decode(errors="replace"))
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += _more(wire)


def _more(wire: socket.socket) -> bytes:
    if piece := wire.recv(65536):
        return piece
    raise RuntimeError("the server closed the connection")
