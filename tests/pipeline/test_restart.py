"""A driver that is killed at any step leaves a table with each event exactly once."""

import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import psutil
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.pipeline import driver, log_rows, soundness
from tests.pipeline.filestore_story import story
from tests.pipeline.tables import NAMES, through
from tests.support.waiting import wait_until
from tristore import failpoints
from tristore.errors import CheckpointMismatch
from tristore.pipeline import jobs
from tristore.pipeline.session import PipelineConfig

# A driver is a process with a JVM of its own: on a busy machine it takes its time to start.
pytestmark = pytest.mark.timeout(600)

STEPS = [
    "pipeline.before_write:raise:1",
    "pipeline.after_parquet:raise:1",
    *(f"pipeline.after_delta_commit:raise:{table}" for table in (1, 2, 3)),
    "pipeline.before_spark_commit:raise:1",
]


@pytest.mark.parametrize(
    ("failpoint", "committed", "orphans"),
    [
        ("pipeline.before_write:exit9:1", 0, False),
        ("pipeline.after_parquet:exit9:1", 0, True),
        ("pipeline.after_delta_commit:exit9:2", 2, True),
    ],
)
def test_a_killed_driver_neither_loses_nor_repeats_events(
    spark: SparkSession, config: PipelineConfig, failpoint: str, committed: int, orphans: bool
) -> None:
    log_rows.append(config.database_url, 300)
    story(config.database_url)
    with driver.running(config, failpoint) as process:
        java = driver.java_of(process.pid)
        assert process.wait(240) == -signal.SIGKILL
    wait_until(lambda: driver.gone(java), 60)
    assert sum(through(config.tables, name) == 304 for name in NAMES) == committed
    left = _files(config)
    assert bool(left) == (committed > 0 or orphans)

    log_rows.append(config.database_url, 200)
    jobs.run_available(config, spark)
    soundness.check(config.database_url, config.tables)
    assert left <= _files(config)
    assert (_files(config) > _shown(config)) == orphans


def test_a_batch_that_fails_at_any_step_is_in_every_table_once(
    spark: SparkSession, config: PipelineConfig
) -> None:
    for step in STEPS:
        log_rows.append(config.database_url, 20)
        story(config.database_url)
        failpoints.arm(step)
        try:
            with pytest.raises(StreamingQueryException, match="failpoint"):
                jobs.run_available(config, spark)
        finally:
            failpoints.arm("")
    jobs.run_available(config, spark)
    soundness.check(config.database_url, config.tables)


def test_two_drivers_at_once_repeat_nothing(spark: SparkSession, config: PipelineConfig) -> None:
    log_rows.append(config.database_url, 50)
    with driver.running(config) as process:
        wait_until(lambda: jobs.status(config)["rows"] == 50, 240)
        for _ in range(3):
            log_rows.append(config.database_url, 40)
            story(config.database_url)
            # Either may find that the other was first; what it must not do is write twice.
            with suppress(StreamingQueryException, CheckpointMismatch):
                jobs.run_available(config, spark)
        process.terminate()
        process.wait(120)
    jobs.run_available(config, spark)
    soundness.check(config.database_url, config.tables)


def test_a_driver_follows_the_log_and_stops_on_sigterm(config: PipelineConfig) -> None:
    log_rows.append(config.database_url, 50)
    with driver.running(config) as process:
        wait_until(lambda: jobs.status(config)["rows"] == 50, 240)
        log_rows.append(config.database_url, 25)
        wait_until(lambda: jobs.status(config)["throughSequence"] == 75, 60)
        java = driver.java_of(process.pid)
        process.terminate()
        assert process.wait(60) == 0
    wait_until(lambda: driver.gone(java), 60)
    assert jobs.status(config)["rows"] == 75


def test_a_driver_stopped_while_it_starts_leaves_no_java(config: PipelineConfig) -> None:
    with driver.running(config) as process:
        java = driver.java_of(process.pid)
        process.terminate()
        assert process.wait(60) == 0
    wait_until(lambda: driver.gone(java), 60)


def test_a_driver_ends_with_its_parent(config: PipelineConfig) -> None:
    log_rows.append(config.database_url, 10)
    start = f"import subprocess; subprocess.Popen({list(driver.COMMAND)!r}).wait()"
    parent = subprocess.Popen([sys.executable, "-c", start], env=driver.environment(config))
    try:
        java = driver.java_of(parent.pid)
        python = psutil.Process(java.ppid())
        wait_until(lambda: jobs.status(config)["rows"] == 10, 240)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: driver.gone(python) and driver.gone(java), 60)


def _files(config: PipelineConfig) -> set[Path]:
    return set(Path(config.tables_root).rglob("*.parquet"))


def _shown(config: PipelineConfig) -> set[Path]:
    """The files that the newest version of each table names."""
    uris = (uri for name in NAMES for uri in config.tables.child(name).table().file_uris())
    return {Path(unquote(uri)) for uri in uris}
