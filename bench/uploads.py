"""1 KiB uploads and directory creates by 8 clients over HTTP, everything on and fsynced.

Two limits of the same run stand beside them, by 8 threads on the same disk: write, fsync and
rename alone, and the same with one Postgres commit for each file.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import orjson
import psycopg

from bench.figure import Figure
from bench.http_load import load, parallel, request
from bench.mounted import MOUNT, Mounted, mounted
from bench.servers import wait_until

CLIENTS = 8
FILES, DIRECTORIES = 6000, 6000
KIB = os.urandom(1024)


def run(scale: float = 1.0) -> list[Figure]:
    each, folders = max(20, int(FILES * scale) // CLIENTS), max(20, int(DIRECTORIES * scale) // 8)
    with mounted() as platform:
        _upload(platform, "warm", 20)
        files = each * CLIENTS / _upload(platform, "in", each)
        made = folders * CLIENTS / _make_directories(platform, folders)
        wait_until(lambda: platform.backlog() == 0)
        bare = each * CLIENTS / _loop(platform, each, commit=False)
        committed = each * CLIENTS / _loop(platform, each, commit=True)
        commits = folders * CLIENTS / _commits(platform, folders)
    loop = "write, fsync, rename"
    return [
        Figure("1 KiB uploads, 8 clients", files, "files/s", bare, loop, "400/s"),
        Figure("1 KiB uploads, 8 clients", files, "files/s", committed, f"{loop}, commit", "60 %"),
        Figure("directory creates, 8 clients", made, "/s", commits, "mkdir, commit", "500/s"),
    ]


def _upload(platform: Mounted, folder: str, each: int) -> float:
    def requests(client: int) -> Iterator[bytes]:
        for number in range(each):
            path = f"/filestore/v1/files/{MOUNT}/{folder}/{client}/{number:06}"
            yield request("PUT", path, KIB)

    return load(platform.settings.port, CLIENTS, requests)


def _make_directories(platform: Mounted, each: int) -> float:
    def requests(client: int) -> Iterator[bytes]:
        for number in range(each):
            path = f"made/{client}/{number:06}"
            body = {"command": "createDirectory", "mount": MOUNT, "path": path}
            yield request(
                "POST",
                "/filestore/v1/commands",
                orjson.dumps(body),
                "Content-Type: application/json",
            )

    return load(platform.settings.port, CLIENTS, requests)


def _loop(platform: Mounted, each: int, *, commit: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="tristore-bare-") as folder:

        def play(client: int) -> None:
            place = Path(folder) / str(client)
            place.mkdir()
            with psycopg.connect(platform.database_url, autocommit=True) as conn:
                for number in range(each):
                    _write(place, number)
                    if commit:
                        conn.execute("INSERT INTO bare_files VALUES (%s)", [f"{client}/{number}"])

        with _table(platform):
            return parallel(CLIENTS, play, [])


def _commits(platform: Mounted, each: int) -> float:
    with tempfile.TemporaryDirectory(prefix="tristore-bare-") as folder:

        def play(client: int) -> None:
            place = Path(folder) / str(client)
            place.mkdir()
            with psycopg.connect(platform.database_url, autocommit=True) as conn:
                for number in range(each):
                    (place / str(number)).mkdir()
                    conn.execute("INSERT INTO bare_files VALUES (%s)", [f"{client}/{number}"])

        with _table(platform):
            return parallel(CLIENTS, play, [])


def _write(place: Path, number: int) -> None:
    staged = place / f".{number}"
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        os.write(descriptor, KIB)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(staged, place / str(number))


class _table:
    def __init__(self, platform: Mounted) -> None:
        self._conn = psycopg.connect(platform.database_url, autocommit=True)

    def __enter__(self) -> None:
        self._conn.execute("CREATE TABLE bare_files (path text PRIMARY KEY)")

    def __exit__(self, *_: object) -> None:
        self._conn.execute("DROP TABLE bare_files")
        self._conn.close()
