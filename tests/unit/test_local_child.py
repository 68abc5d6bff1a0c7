"""Children die with their parent, stop when asked, and write to their log."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from tristore.local.child import Child, Command

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-uc",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up')\n"
    "while True: signal.pause()",
]
ANSWERING = [
    sys.executable,
    "-uc",
    "import signal; signal.signal(signal.SIGUSR1, lambda *_: print('alive')); print('up')\n"
    "while True: signal.pause()",
]
PARENT = """
import sys, time
from pathlib import Path
from tristore.local.child import Child, Command
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
print(Child(Command(sleep, Path(sys.argv[1]))).pid, flush=True)
time.sleep(600)
"""


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


def says(log: Path, word: str) -> Callable[[], bool]:
    return lambda: log.exists() and word in log.read_text()


def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    until(lambda: gone(pid))


def test_a_child_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    log, made, thread_ids = tmp_path / "log", [], []

    def start() -> None:
        thread_ids.append(threading.get_native_id())
        made.append(Child(Command(ANSWERING, log)))

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    until(lambda: not Path(f"/proc/self/task/{thread_ids[0]}").exists())
    until(says(log, "up"))
    os.kill(made[0].pid, signal.SIGUSR1)
    until(says(log, "alive"))
    made[0].stop(5)


def test_stop_asks_first(tmp_path: Path) -> None:
    assert Child(Command(SLEEP, tmp_path / "log")).stop(10) == -signal.SIGTERM


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    child = Child(Command(STUBBORN, tmp_path / "log"))
    until(says(tmp_path / "log", "up"))
    assert child.stop(0.1) == -signal.SIGKILL


def test_what_a_dead_child_left_running_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = (
        f"import os, subprocess; print(subprocess.Popen({SLEEP}).pid, flush=True); os._exit(3)"
    )
    child = Child(Command([sys.executable, "-c", program], log))
    assert child.wait(60) == 3
    until(lambda: gone(int(log.read_text())))


def test_a_child_is_out_of_reach_of_the_terminal(tmp_path: Path) -> None:
    child = Child(Command(SLEEP, tmp_path / "log"))
    assert os.getsid(child.pid) == child.pid
    child.stop(5)


def test_the_log_is_appended_to_and_private(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "part.log"
    for word in ("one", "two"):
        assert Child(Command([sys.executable, "-c", f"print('{word}')"], log)).wait(60) == 0
    assert log.read_text() == "one\ntwo\n"
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_program_that_cannot_be_run_is_named_in_the_log(tmp_path: Path) -> None:
    assert Child(Command(["/nonexistent/program"], tmp_path / "log")).wait(60) != 0
    assert "cannot run /nonexistent/program" in (tmp_path / "log").read_text()
