"""The supervisor: one per folder, restarts what dies, and leaves nothing behind."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis

from tristore.local.stack import reachable

PROGRAM = """
import asyncio, sys
from pathlib import Path
from tristore import observe
from tristore.config import Settings
from tristore.errors import TristoreError
from tristore.local.part import Part
from tristore.local.stack import Hooks, Stack

async def announce(run):
    print("announced", run.url, flush=True)

def make_token(database_url, file):
    file.write_text("secret")

toy = "import os, signal, sys; print(os.environ['TRISTORE_PORT'], os.environ['TRISTORE_REDIS_URL'])"
idle = [sys.executable, "-uc", toy + chr(10) + "while True: signal.pause()"]
stubborn = [sys.executable, "-uc", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    + chr(10) + "while True: signal.pause()"]
observe.configure_logs("up")
settings = Settings(data_dir=Path(sys.argv[1]), port=int(sys.argv[2]))
parts = [Part("toy", idle), *(Part("stubborn", stubborn) for _ in sys.argv[3:])]
try:
    asyncio.run(Stack(settings, parts, Hooks(make_token, announce)).run())
except TristoreError as error:
    sys.exit(str(error))
"""


@dataclass
class Running:
    process: subprocess.Popen[str]
    folder: Path

    def run_file(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "run.json").read_text()))

    def pids(self) -> dict[str, int]:
        return dict(self.run_file()["pids"])

    def logged(self) -> str:
        return (self.folder.parent / "err").read_text()


def command(folder: Path, port: int = 0, *more: str) -> list[str]:
    return [sys.executable, "-c", PROGRAM, str(folder), str(port), *more]


@contextmanager
def platform(folder: Path, *more: str, **environment: str) -> Iterator[Running]:
    with (
        open(folder.parent / "err", "w") as errors,
        subprocess.Popen(
            command(folder, 0, *more),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **environment},
        ) as process,
    ):
        assert process.stdout
        running = Running(process, folder)
        try:
            assert process.stdout.readline().startswith("announced"), running.logged()
            yield running
        finally:
            process.terminate()


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a platform that ran once: to make its database takes as long as a test."""
    folder = tmp_path_factory.mktemp("once") / "data"
    with platform(folder) as running:
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 0
    for port in folder.rglob("port"):
        port.unlink()
    return folder


@pytest.fixture
def used(ended: Path, folder: Path) -> Path:
    """A folder of its own for each test, owners and modes included."""
    subprocess.run(["cp", "-a", str(ended), str(folder)], check=True)
    return folder


def test_a_platform_tells_where_everything_is(folder: Path) -> None:
    with platform(folder) as running:
        found = running.run_file()
        assert stat.S_IMODE((folder / "run.json").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert found["pid"] == running.process.pid
        assert set(found["pids"]) == {"postgres", "redis", "toy"}
        assert not any(gone(pid) for pid in found["pids"].values())
        with psycopg.connect(found["databaseUrl"]) as conn:
            assert conn.execute("SELECT to_regclass('bus.workflow_events')").fetchone() != (None,)
        with redis.Redis.from_url(found["redisUrl"]) as client:
            assert client.ping()
        port = found["url"].rpartition(":")[2]
        until(lambda: (folder / "logs" / "toy.log").read_text() == f"{port} {found['redisUrl']}\n")


def test_status_shows_the_running_platform_to_programs(used: Path) -> None:
    status = [sys.executable, "-m", "tristore", "status", "--json", "--data-dir", str(used)]
    with platform(used) as running:
        found = json.loads(subprocess.run(status, capture_output=True, check=True).stdout)
        shown = running.run_file()
    assert found == {
        **{name: shown[name] for name in ("url", "databaseUrl", "redisUrl", "pids")},
        "token": "secret",
        "ready": False,
    }
    after = subprocess.run(status, capture_output=True, text=True)
    assert (after.returncode, after.stdout) == (1, "")
    assert after.stderr.startswith(f"tristore: no platform runs on {used}")


def test_ctrl_c_leaves_no_process_and_the_next_start_finds_the_data(folder: Path) -> None:
    with platform(folder, "with a part that does not listen") as running:
        first = running.run_file()
        with psycopg.connect(first["databaseUrl"]) as conn:
            conn.execute("CREATE TABLE kept AS SELECT 7 AS n")
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 0
        assert all(gone(pid) for pid in first["pids"].values())
        assert not (folder / "run.json").exists()
        ended = (folder / "logs" / "postgres.log").read_text()
        assert "database system is shut down" in ended
    with platform(folder) as running:
        again = running.run_file()
        assert again["databaseUrl"] == first["databaseUrl"]
        with psycopg.connect(again["databaseUrl"]) as conn:
            assert conn.execute("SELECT n FROM kept").fetchone() == (7,)


def test_everything_dies_with_a_killed_supervisor(used: Path) -> None:
    with platform(used) as running:
        pids = running.pids()
        running.process.kill()
        until(lambda: all(gone(pid) for pid in pids.values()))
    with platform(used) as running:
        assert set(running.pids()) == set(pids)


@pytest.mark.parametrize("name", ["toy", "postgres", "redis"])
def test_what_dies_is_restarted_with_a_log_line(used: Path, name: str) -> None:
    with platform(used) as running:
        before = running.pids()
        os.kill(before[name], signal.SIGKILL)
        until(lambda: running.pids().get(name, before[name]) != before[name])
        after = running.pids()
        assert {k: v for k, v in after.items() if k != name} == {
            k: v for k, v in before.items() if k != name
        }
        lines = [json.loads(line) for line in running.logged().splitlines()]
        told = [(line["child"], line["message"], line.get("exitCode")) for line in lines]
        assert told == [(name, f"{name} died", -9), (name, f"{name} restarted", None)]


def test_a_second_supervisor_on_the_same_folder_is_refused(used: Path) -> None:
    with platform(used) as running:
        second = subprocess.run(command(used), capture_output=True, text=True, timeout=60)
        assert second.returncode == 1
        assert f"pid {running.process.pid}) already runs on {used}" in second.stderr
        assert not any(gone(pid) for pid in running.pids().values())


def test_a_taken_api_port_is_refused_before_anything_starts(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        done = subprocess.run(command(folder, port), capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"127.0.0.1:{port} is in use by another program" in done.stderr
    assert not (folder / "postgres").exists()


def test_given_servers_are_used_and_inline_starts_no_redis(folder: Path, database_url: str) -> None:
    given = {"TRISTORE_DATABASE_URL": database_url, "TRISTORE_REDIS_URL": "inline"}
    with platform(folder, **given) as running:
        found = running.run_file()
    assert set(found["pids"]) == {"toy"}
    assert (found["databaseUrl"], found["redisUrl"]) == (database_url, "inline")


@pytest.mark.parametrize("moment", ["pg.new-*/PG_VERSION", "pg/postmaster.pid"])
def test_a_stop_during_the_first_start_leaves_nothing_behind(folder: Path, moment: str) -> None:
    with subprocess.Popen(command(folder), stdout=subprocess.DEVNULL) as process:
        until(lambda: any((folder / "postgres").glob(moment)))
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        assert process.wait(60) == 0
    assert children
    assert all(gone(child.pid) for child in children)


def test_an_existing_folder_keeps_its_mode(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    with platform(folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]")],
)
def test_the_shown_url_can_be_reached_from_this_machine(host: str, address: str) -> None:
    assert reachable(host) == address
