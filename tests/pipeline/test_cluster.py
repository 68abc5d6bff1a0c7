"""The same line on a real Spark cluster: the work runs in the workers' executors."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.pipeline import log_rows
from tests.pipeline.cluster import cluster
from tests.pipeline.tables import ask
from tristore.pipeline import jobs
from tristore.pipeline.session import PipelineConfig

# Six JVMs start: on a busy machine they take their time.
pytestmark = pytest.mark.timeout(600)

# Work starts when both executors are there; the event log then tells which ran what.
DEFAULTS = """\
spark.eventLog.enabled true
spark.eventLog.dir {folder}
spark.eventLog.compress false
spark.eventLog.rolling.enabled false
spark.scheduler.minRegisteredResourcesRatio 1.0
spark.scheduler.maxRegisteredResourcesWaitingTime 120s
"""
DRIVER = """\
import json, sys
from pathlib import Path
from tristore.errors import StartRefused
from tristore.pipeline import jobs, reach
from tristore.pipeline.session import PipelineConfig, make_session
given = json.load(sys.stdin)
del given["upkeep"]
config = PipelineConfig(**{**given, "checkpoint": Path(given["checkpoint"])})
spark = make_session(config)
try:
    reach.refuse_blind_executors(spark, Path("/proc/self/cwd/tables"))
except StartRefused as refusal:
    print(refusal)
jobs.run_available(config, spark)
spark.stop()
"""


def test_both_workers_of_a_cluster_take_part(
    config: PipelineConfig, java: str, tmp_path: Path
) -> None:
    log_rows.append(config.database_url, 1000)
    with cluster(tmp_path, java, workers=2) as master:
        said = _run_driver(
            replace(
                config,
                master=master,
                driver_host="127.0.0.1",
                executor_memory="512m",
                partition_rows=100,
            ),
            tmp_path,
        )
    # To each process that folder is another one, as a folder of one name is on several machines.
    assert f"executors on {socket.gethostname()} do not see" in said
    assert "/proc/self/cwd/tables" in said
    counts = ask(config.tables, "SELECT count(*), count(DISTINCT id) FROM events")
    assert counts == [[1000, 1000]]
    assert jobs.status(config)["throughSequence"] == 1000
    written = _records_written(tmp_path / "history")
    assert written.keys() == {"0", "1"}
    assert sum(written.values()) == 1000


def _run_driver(config: PipelineConfig, folder: Path) -> str:
    history, conf = folder / "history", folder / "conf"
    history.mkdir()
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(DEFAULTS.format(folder=history.as_uri()))
    env = {**os.environ, "SPARK_CONF_DIR": str(conf), "SPARK_LOCAL_IP": "127.0.0.1"}
    given = json.dumps(asdict(config), default=str)
    argv = [sys.executable, "-c", DRIVER]
    done = subprocess.run(
        argv, env=env, cwd=folder, input=given, text=True, timeout=350, check=True, stdout=PIPE
    )
    return done.stdout


def _records_written(history: Path) -> dict[str, int]:
    """Rows each executor wrote, by its id; the driver's own would be called `driver`."""
    written: dict[str, int] = {}
    for event in _events(history):
        if event["Event"] == "SparkListenerTaskEnd":
            rows = event["Task Metrics"]["Output Metrics"]["Records Written"]
            executor = event["Task Info"]["Executor ID"]
            written[executor] = written.get(executor, 0) + rows
    return {executor: rows for executor, rows in written.items() if rows}


def _events(history: Path) -> list[dict[str, Any]]:
    lines = [
        line
        for file in history.iterdir()
        if not file.name.startswith(".")
        for line in file.read_text("utf-8").splitlines()
    ]
    return [json.loads(line) for line in lines]
