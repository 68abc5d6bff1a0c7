"""What other programs read about a running platform."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tristore.local import run_file
from tristore.local.run_file import Run


def a_run(folder: Path, pid: int) -> Run:
    return Run("http://127.0.0.1:1", "postgresql://a", "redis://b", folder / "t", pid, {"api": 7})


def test_a_run_is_read_back_by_others_of_the_same_user_only(tmp_path: Path) -> None:
    written = a_run(tmp_path, os.getpid())
    run_file.write(tmp_path, written)
    assert run_file.read(tmp_path) == written
    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o600


def test_the_names_in_the_file_are_those_of_the_contract(tmp_path: Path) -> None:
    run_file.write(tmp_path, a_run(tmp_path, os.getpid()))
    found = json.loads((tmp_path / "run.json").read_text())
    assert set(found) == {"url", "databaseUrl", "redisUrl", "tokenFile", "pid", "pids"}


def test_the_file_of_a_killed_platform_does_not_count(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    run_file.write(tmp_path, a_run(tmp_path, dead.pid))
    assert run_file.read(tmp_path) is None


def test_a_process_that_got_the_pid_later_does_not_count(tmp_path: Path) -> None:
    run_file.write(tmp_path, a_run(tmp_path, os.getpid()))
    os.utime(tmp_path / "run.json", (1, 1))
    assert run_file.read(tmp_path) is None


def test_no_file_is_no_platform(tmp_path: Path) -> None:
    assert run_file.read(tmp_path) is None
