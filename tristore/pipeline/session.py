"""The SparkSession, made in one place from one configuration."""

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession

from tristore.config import set_default_environment, set_environment
from tristore.errors import StartRefused
from tristore.pipeline.source import ActivitySource, LogSource
from tristore.pipeline.spark_home import spark_home
from tristore.pipeline.upkeep import Upkeep
from tristore.timestore.place import Place

ROW_GROUP = 120_000


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    # Carries a password, which has no place in logs and tracebacks.
    database_url: str = field(repr=False)
    tables_root: str
    checkpoint: Path
    java_home: str | None = None
    master: str = "local[*]"
    driver_memory: str = "1g"
    trigger_seconds: float = 1
    max_events_per_trigger: int = 500_000
    partition_rows: int = 125_000
    shuffle_partitions: int = 2
    # Whether filestore events become activity and growth, and how deep growth looks into folders.
    filestore_sync: bool = True
    growth_depth: int = 2
    # Where executors find the driver; unset: loopback for a local master, else Spark's choice.
    driver_host: str | None = None
    executor_memory: str | None = None
    # How the tables are reached when they lie on S3; holds its secret key.
    tables_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    upkeep: Upkeep = field(default_factory=Upkeep)
    # Staged ingests: about how many rows at a time, and how long their files stay afterwards.
    max_ingest_rows_per_trigger: int = 1_000_000
    staged_keep_seconds: int = 3600

    @property
    def tables(self) -> Place:
        return Place(self.tables_root, self.tables_options)

    def __post_init__(self) -> None:
        if self.tables.local is None and not self.tables_root.startswith("s3://"):
            raise StartRefused(
                f"tables lie in a folder or on S3, not in {self.tables_root}; set "
                "TRISTORE_TIMESTORE__ROOT to a folder that driver and executors share, or to "
                "s3://bucket/prefix"
            )
        # delta-rs decodes such a name and then looks for another folder.
        if unquote(self.tables_root) != self.tables_root:
            raise StartRefused(
                f"the tables' folder {self.tables_root} has a percent escape in its name; "
                "set TRISTORE_TIMESTORE__ROOT to a folder without one"
            )


def make_session(config: PipelineConfig) -> SparkSession:
    _prepare_launch(config)
    builder = SparkSession.builder.appName("tristore").master(config.master)
    for name, value in _settings(config).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    # It would log every call from the JVM.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    for source in (LogSource, ActivitySource):
        spark.dataSource.register(source)
    return spark


def _prepare_launch(config: PipelineConfig) -> None:
    """What the JVM takes only from its environment; it plans data sources with PYSPARK_PYTHON."""
    set_environment("PYSPARK_PYTHON", sys.executable)
    set_environment("PYSPARK_DRIVER_PYTHON", sys.executable)
    set_default_environment("SPARK_HOME", str(spark_home(config.checkpoint.parent / "spark")))
    if config.java_home:
        set_environment("JAVA_HOME", config.java_home)


def _settings(config: PipelineConfig) -> dict[str, str]:
    return {
        "spark.driver.memory": config.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # Spark's default is INT96, which readers see without a zone.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": str(config.shuffle_partitions),
        # Kept for the length of a batch: packing it would cost more than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.streaming.stopTimeout": "3s",
        # DuckDB reads row groups side by side; Spark's own measure, 128 MB, would make one of all.
        "spark.hadoop.parquet.block.row.count.limit": str(ROW_GROUP),
        # The sink takes what lies in a batch's folder: only version 1 of the committer leaves
        # nothing there of a task that failed.
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        **_placement(config),
    }


def _placement(config: PipelineConfig) -> dict[str, str]:
    host = config.driver_host or ("127.0.0.1" if config.master.startswith("local") else None)
    placed = {"spark.driver.host": host, "spark.driver.bindAddress": host} if host else {}
    memory = {"spark.executor.memory": config.executor_memory} if config.executor_memory else {}
    return {**placed, **memory}
