"""The embedded Postgres: keeps its data, its port and its secrets, and leaves others alone."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from tristore.errors import StartRefused
from tristore.local import postgres_binaries
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.postgres_cluster import Cluster

PROGRAM = """
import sys, time
from pathlib import Path
from tristore.local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""

WRITER = """
import itertools, os, sys, time
os.chdir(sys.argv[1])
for number in itertools.count():
    try:
        open(str(number), "w").close()
    except FileNotFoundError:
        break
    if number > 20_000:
        time.sleep(0.1)
"""


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.01)


def processes_of(folder: Path) -> list[dict[str, Any]]:
    """Command line and uids as seen in one look, since a backend may end at any moment."""
    name = Cluster(folder, folder / "log").name
    seen = (process.info for process in psutil.process_iter(["cmdline", "uids"]))
    return [info for info in seen if name in " ".join(info["cmdline"] or [])]


def numbers(url: str) -> list[int]:
    with psycopg.connect(url) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        conn.execute("INSERT INTO kept SELECT count(*) FROM kept")
        return [row[0] for row in conn.execute("SELECT n FROM kept ORDER BY n")]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Below a folder that only we may pass, and that Postgres' own user may not."""
    top = Path(tempfile.mkdtemp())
    yield top / "data" / "postgres"
    shutil.rmtree(top)


def test_a_second_start_finds_its_data_at_the_same_url(folder: Path) -> None:
    with EmbeddedPostgres(folder) as server:
        first = server.start()
        assert numbers(first) == [0]
    with EmbeddedPostgres(folder) as server:
        assert server.start() == first
        assert numbers(first) == [0, 1]
        assert numbers(server.client_url()) == [0, 1, 2]


def test_it_is_set_up_for_safety(folder: Path) -> None:
    shown = ("data_checksums", "fsync", "server_encoding", "listen_addresses")
    shown += ("unix_socket_directories", "password_encryption")
    with EmbeddedPostgres(folder) as server, psycopg.connect(server.start()) as conn:
        found = [conn.execute(f"SHOW {name}").fetchone() for name in shown]
        rules = conn.execute("SELECT DISTINCT auth_method FROM pg_hba_file_rules").fetchall()
    assert found == [("on",), ("on",), ("UTF8",), ("127.0.0.1",), ("",), ("scram-sha-256",)]
    assert rules == [("scram-sha-256",)]


def test_it_runs_unprivileged_and_no_folder_above_is_changed(folder: Path) -> None:
    folder.parent.mkdir(mode=0o750)
    above = [folder.parent, *folder.parent.parents]
    before = [(p.stat().st_mode, p.stat().st_uid, p.stat().st_gid) for p in above]
    assert stat.S_IMODE(above[1].stat().st_mode) == 0o700
    with EmbeddedPostgres(folder) as server:
        assert numbers(server.start()) == [0]
        uids = {uid for process in processes_of(folder) for uid in process["uids"]}
        assert (folder / "pg" / "PG_VERSION").exists()
    own = os.geteuid()
    assert uids == {own} if own else len(uids) == 1 and 0 not in uids
    assert [(p.stat().st_mode, p.stat().st_uid, p.stat().st_gid) for p in above] == before


def test_secrets_are_readable_by_their_owner_only(folder: Path) -> None:
    with EmbeddedPostgres(folder) as server:
        server.start()
        password = (folder / "password").read_text().strip()
        lines = [" ".join(process["cmdline"]) for process in processes_of(folder)]
    assert stat.S_IMODE((folder / "password").stat().st_mode) == 0o600
    assert len(lines) > 3
    assert not any(password in line for line in lines)


def test_all_its_processes_die_with_a_killed_parent(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        assert psutil.pid_exists(int(parent.stdout.readline()))
        assert len(processes_of(folder)) > 3
        parent.kill()
    until(lambda: not processes_of(folder))
    with EmbeddedPostgres(folder) as server:
        assert numbers(server.start()) == [0]


def test_a_first_start_killed_halfway_is_done_again(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder)]) as parent:
        until(lambda: any(folder.glob("pg.new-*/PG_VERSION")))
        parent.kill()
    assert not (folder / "pg").exists()
    with EmbeddedPostgres(folder) as server:
        assert numbers(server.start()) == [0]
    assert not list(folder.glob("pg.new-*"))


def test_what_a_killed_start_still_writes_is_swept_too(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    left = folder / "pg.new-left"
    left.mkdir()
    with subprocess.Popen([sys.executable, "-c", WRITER, str(left)]) as writer:
        try:
            until(lambda: any(left.iterdir()))
            with EmbeddedPostgres(folder) as server:
                assert numbers(server.start()) == [0]
            assert not left.exists()
            assert writer.wait(60) == 0
        finally:
            writer.kill()


def test_it_comes_back_after_kill_9(folder: Path) -> None:
    with EmbeddedPostgres(folder) as server:
        numbers(server.start())
        assert server.pid
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: server.poll() is not None)
        assert numbers(server.start()) == [0, 1]


def test_a_lock_file_whose_pid_is_now_a_stranger_is_no_obstacle(folder: Path) -> None:
    with EmbeddedPostgres(folder) as server:
        server.start()
        lines = (folder / "pg" / "postmaster.pid").read_text().splitlines()
    stranger = "\n".join([str(os.getpid()), *lines[1:]])
    (folder / "pg" / "postmaster.pid").write_text(stranger + "\n")
    with EmbeddedPostgres(folder) as server:
        assert numbers(server.start()) == [0]


def test_an_older_server_of_the_same_folder_is_stopped_first(folder: Path) -> None:
    with EmbeddedPostgres(folder) as older, EmbeddedPostgres(folder) as newer:
        numbers(older.start())
        assert numbers(newer.start()) == [0, 1]
        assert older.poll() == 0
        assert newer.poll() is None


def test_data_of_another_version_is_refused_with_the_next_step(folder: Path) -> None:
    (folder / "pg").mkdir(parents=True)
    (folder / "pg" / "PG_VERSION").write_text("16\n")
    if os.geteuid() == 0:
        os.chown(folder / "pg", 65534, 65534)
    with EmbeddedPostgres(folder) as server, pytest.raises(StartRefused, match="pg_dump"):
        server.start()


def test_programs_that_others_cannot_read_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, shared = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
    shared.chmod(0o755)
    site = postgres_binaries._site()
    for part in (postgres_binaries.INSTALL, postgres_binaries.LIBRARIES):
        shutil.copytree(site / part, hidden / part, symlinks=True)
    monkeypatch.setattr(postgres_binaries, "_site", lambda: hidden)
    monkeypatch.setattr(postgres_binaries, "SHARED_COPIES", shared)
    try:
        binaries = postgres_binaries.for_anyone()
        assert binaries.is_relative_to(shared)
        assert postgres_binaries.for_anyone() == binaries
        assert len(list(shared.iterdir())) == 1
        user = 65534 if os.geteuid() == 0 else None
        answer = subprocess.run([binaries / "initdb", "--version"], user=user, capture_output=True)
        assert answer.stdout.split()[:2] == [b"initdb", b"(PostgreSQL)"]
    finally:
        shutil.rmtree(hidden)
        shutil.rmtree(shared)
