"""Memory of the whole platform at rest: everything that `tristore up` starts, Spark among it."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import psycopg

from bench.figure import Figure
from bench.pipeline_throughput import append_page
from bench.servers import wait_until
from tests.support.parts import free_port
from tristore.config import child_environment
from tristore.local import run_file

_FED = "SELECT count(DISTINCT dataset) FROM timestore.fed"
REST_SECONDS = 30
GIB = 2**30


def run(scale: float = 1.0) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="tristore-bench-") as folder:
        given = {"TRISTORE_DATA_DIR": folder, "TRISTORE_PORT": str(free_port())}
        command = [sys.executable, "-m", "tristore", "up"]
        process = subprocess.Popen(command, env=child_environment(given), stderr=subprocess.DEVNULL)
        try:
            used = at_rest(psutil.Process(process.pid), Path(folder))
        finally:
            process.terminate()
            process.wait(60)
    return [Figure("whole platform at rest, with Spark", used / GIB, "GiB", None, "", "2.6 GiB")]


def at_rest(platform: psutil.Process, folder: Path) -> float:
    """Once every process has worked: those that Spark needs for a batch stay for the next."""
    wait_until(lambda: run_file.read(folder), 240)
    started = run_file.read(folder)
    assert started is not None
    with psycopg.connect(started.database_url, autocommit=True) as conn:
        with conn.transaction():
            append_page(conn, 0, 1000)
        wait_until(lambda: (conn.execute(_FED).fetchone() or (0,))[0] == 3, 240)
    time.sleep(REST_SECONDS)
    processes = [platform, *platform.children(recursive=True)]
    # Proportional: pages that several processes share count once.
    return sum(float(process.memory_full_info().pss) for process in processes)
