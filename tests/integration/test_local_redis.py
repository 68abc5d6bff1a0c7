"""The embedded Redis: keeps its data, its port and its password."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import redis

from tristore.local.redis import EmbeddedRedis

PROGRAM = """
import sys, time
from pathlib import Path
from tristore.local.redis import EmbeddedRedis
server = EmbeddedRedis(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def count(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        return int(client.incr("kept"))


def test_a_second_start_finds_its_data_at_the_same_url(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server:
        first = server.start()
        assert count(first) == 1
    with EmbeddedRedis(tmp_path) as server:
        assert server.start() == first
        assert count(first) == 2


def test_no_job_is_evicted_and_every_write_goes_to_the_file(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server, redis.Redis.from_url(server.start()) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("append*sync") == {"appendfsync": "everysec"}
        assert client.info("persistence")["aof_enabled"] == 1


def test_nobody_gets_in_without_the_password(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server:
        url = server.start()
        with (
            redis.Redis(port=int((tmp_path / "port").read_text())) as stranger,
            pytest.raises(redis.AuthenticationError),
        ):
            stranger.ping()
        line = " ".join(psutil.Process(server.pid).cmdline())
    password = (tmp_path / "password").read_text().strip()
    assert password in url
    assert password not in line
    for name in ("password", "redis.conf"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_it_dies_with_a_killed_parent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    until(lambda: gone(pid))


def test_an_append_only_file_torn_by_a_crash_is_loaded(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server:
        url = server.start()
        assert [count(url), count(url)] == [1, 2]
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.poll() is not None)
        file = tmp_path / "appendonly.aof"
        os.truncate(file, file.stat().st_size - 3)
        assert count(server.start()) == 2


def test_an_older_server_of_the_same_folder_is_stopped_first(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as older, EmbeddedRedis(tmp_path) as newer:
        count(older.start())
        assert count(newer.start()) == 2
        assert older.poll() == 0
