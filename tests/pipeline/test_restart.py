"""A driver that is killed at any step leaves a table with each event exactly once."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.pipeline import driver, log_rows
from tests.support.waiting import wait_until
from tristore.pipeline import jobs
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.query import run_sql


@pytest.mark.parametrize(
    ("failpoint", "committed", "orphans"),
    [
        ("pipeline.before_write", False, False),
        ("pipeline.after_parquet", False, True),
        ("pipeline.after_delta_commit", True, False),
    ],
)
async def test_a_killed_driver_neither_loses_nor_repeats_events(
    spark: SparkSession, config: PipelineConfig, failpoint: str, committed: bool, orphans: bool
) -> None:
    log_rows.append(config.database_url, 300)
    with driver.running(config, f"{failpoint}:exit9:1") as process:
        java = driver.java_of(process.pid)
        assert process.wait(120) == -signal.SIGKILL
    wait_until(lambda: driver.gone(java), 20)
    assert jobs.status(config)["rows"] == (300 if committed else 0)
    left = _files(config)
    assert bool(left) == (committed or orphans)

    log_rows.append(config.database_url, 200)
    jobs.run_available(config, spark)
    answer = await run_sql(config.tables_root, "SELECT count(*), count(DISTINCT id) FROM events")
    assert answer["rows"] == [[500, 500]]
    assert answer["throughSequence"] == 500
    assert left <= _files(config)
    assert (len(_files(config)) > jobs.status(config)["files"]) == orphans


def test_a_driver_follows_the_log_and_stops_on_sigterm(config: PipelineConfig) -> None:
    log_rows.append(config.database_url, 50)
    with driver.running(config) as process:
        wait_until(lambda: jobs.status(config)["rows"] == 50, 90)
        log_rows.append(config.database_url, 25)
        wait_until(lambda: jobs.status(config)["throughSequence"] == 75, 30)
        java = driver.java_of(process.pid)
        process.terminate()
        assert process.wait(15) == 0
    wait_until(lambda: driver.gone(java), 10)
    assert jobs.status(config)["rows"] == 75


def test_a_driver_stopped_while_it_starts_leaves_no_java(config: PipelineConfig) -> None:
    with driver.running(config) as process:
        java = driver.java_of(process.pid)
        process.terminate()
        assert process.wait(15) == 0
    wait_until(lambda: driver.gone(java), 30)


def test_a_driver_ends_with_its_parent(config: PipelineConfig) -> None:
    log_rows.append(config.database_url, 10)
    start = f"import subprocess; subprocess.Popen({list(driver.COMMAND)!r}).wait()"
    parent = subprocess.Popen([sys.executable, "-c", start], env=driver.environment(config))
    try:
        java = driver.java_of(parent.pid)
        python = psutil.Process(java.ppid())
        wait_until(lambda: jobs.status(config)["rows"] == 10, 90)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: driver.gone(python) and driver.gone(java), 20)


def _files(config: PipelineConfig) -> set[Path]:
    return set(Path(config.tables_root).rglob("*.parquet"))
