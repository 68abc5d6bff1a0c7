"""The pipeline's driver as the process it is, and the Java process it brings."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psutil

from tests.support.waiting import wait_until
from tristore.pipeline.session import PipelineConfig

# Java gets ready for a run of hours, which takes most of a run of seconds.
SHORT_LIVED = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
COMMAND = (sys.executable, "-m", "tristore", "pipeline", "run")


def environment(config: PipelineConfig, failpoints: str = "") -> dict[str, str]:
    return {
        **os.environ,
        **_s3(config.tables_options),
        "TRISTORE_DATABASE_URL": config.database_url,
        "TRISTORE_DATA_DIR": str(config.checkpoint.parents[1]),
        "TRISTORE_TIMESTORE__ROOT": config.tables_root,
        "TRISTORE_JAVA_HOME": str(config.java_home),
        "TRISTORE_SPARK_MASTER": config.master,
        "TRISTORE_SPARK_DRIVER_MEMORY": config.driver_memory,
        "TRISTORE_TIMESTORE__TRIGGER_SECONDS": "0.2",
        # Upkeep rewrites files and tells of it; tests of the stream count both.
        "TRISTORE_TIMESTORE__LIFECYCLE_SECONDS": "3600",
        "TRISTORE_FAILPOINTS": failpoints,
    }


def _s3(options: Mapping[str, str]) -> dict[str, str]:
    if not options:
        return {}
    return {
        "TRISTORE_TIMESTORE__S3_ENDPOINT": options["aws_endpoint"],
        "TRISTORE_TIMESTORE__S3_CREDENTIALS": "env:TABLES",
        "TABLES_ACCESS_KEY_ID": options["aws_access_key_id"],
        "TABLES_SECRET_ACCESS_KEY": options["aws_secret_access_key"],
    }


@contextmanager
def running(config: PipelineConfig, failpoints: str = "") -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(COMMAND, env=environment(config, failpoints))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def java_of(pid: int) -> psutil.Process:
    """The JVM that is Spark's driver; waits until it is there."""
    return wait_until(lambda: _java(psutil.Process(pid)), 60)


def _java(process: psutil.Process) -> psutil.Process | None:
    # Other Javas come and go before it: one asked for its version, one that makes its command.
    found = [child for child in process.children(recursive=True) if _is_spark(child)]
    return found[0] if found else None


def _is_spark(process: psutil.Process) -> bool:
    try:
        return "org.apache.spark.deploy.SparkSubmit" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
