"""One file of 2 GiB up and down over HTTP, beside `cp` and `sha256sum` of the same file."""

import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.figure import Figure
from bench.http_load import request
from bench.mounted import MOUNT, Mounted, mounted

SIZE = 2 * 1024**3
MIB = 1024 * 1024
PATH = f"/filestore/v1/files/{MOUNT}/big"


def run(scale: float = 1.0) -> list[Figure]:
    size = max(64 * MIB, int(SIZE * scale))
    with mounted() as platform, tempfile.TemporaryDirectory(prefix="tristore-big-") as folder:
        source = Path(folder) / "source"
        _fill(source, size)
        bare = size / MIB / _bare(source)
        _upload(platform, source, 8 * MIB)
        with _growth(platform.pid) as grown:
            up = size / MIB / _timed(lambda: _upload(platform, source, size))
            down = size / MIB / _timed(lambda: _download(platform, size))
    limit = "cp and sha256sum"
    name = f"{size / 1024**3:.1f} GiB"
    return [
        Figure(f"upload of {name}", up, "MiB/s", bare, limit, "50 %"),
        Figure(f"download of {name}", down, "MiB/s", bare, limit, "50 %"),
        Figure(f"memory of the API, {name} up and down", max(grown), "MiB", None, "", "64 MiB"),
    ]


def _fill(path: Path, size: int) -> None:
    """Not zeros: filesystems and CPUs make less of those."""
    block = os.urandom(8 * MIB)
    with open(path, "wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
        os.fsync(file.fileno())


def _bare(source: Path) -> float:
    """Cold or warm cache alike: the upload reads the same file right after."""
    copy = source.with_name("copy")
    taken = _timed(lambda: subprocess.run(["cp", source, copy], check=True))
    taken += _timed(lambda: subprocess.run(["sha256sum", copy], check=True, capture_output=True))
    copy.unlink()
    return taken


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _upload(platform: Mounted, source: Path, size: int) -> None:
    head = request("PUT", PATH, b"").replace(b"Content-Length: 0", b"Content-Length: %d" % size)
    with socket.create_connection(("127.0.0.1", platform.settings.port)) as wire:
        wire.sendall(head)
        with open(source, "rb") as file:
            wire.sendfile(file, count=size)
        answer = wire.recv(65536)
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")), answer[:300]


def _download(platform: Mounted, size: int) -> None:
    room = memoryview(bytearray(MIB))
    with socket.create_connection(("127.0.0.1", platform.settings.port)) as wire:
        wire.sendall(request("GET", PATH, b"", "Connection: close"))
        received = 0
        while count := wire.recv_into(room):
            received += count
    assert received > size, received


@contextmanager
def _growth(pid: int) -> Iterator[list[float]]:
    """MiB the process has grown by, looked at every 50 ms."""
    process, done = psutil.Process(pid), threading.Event()
    start, seen = process.memory_info().rss, [0.0]

    def look() -> None:
        while not done.wait(0.05):
            seen.append((process.memory_info().rss - start) / MIB)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
