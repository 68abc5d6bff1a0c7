"""The log into its three tables: events a second, beside Spark writing them from Parquet files."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

from bench.figure import Figure
from tristore.db.migrate import migrate
from tristore.db.queries import load
from tristore.local.java import java_home
from tristore.local.postgres import EmbeddedPostgres
from tristore.pipeline import jobs, source
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.feeds import Feed, feeds, frame
from tristore.pipeline.session import PipelineConfig, make_session

_sql = load("bench", "pipeline_events.sql")
EVENTS = 2_000_000
# Two batches: what Spark compiles is compiled then.
WARM = 1_000_000
BATCH = 500_000


def run(scale: float = 1.0) -> list[Figure]:
    count = int(EVENTS * scale)
    with prepared() as config:
        append(config.database_url, 0, WARM)
        spark = make_session(config)
        try:
            jobs.run_available(config, spark)
            append(config.database_url, WARM, WARM + count)
            begun = time.perf_counter()
            jobs.run_available(config, spark)
            rate = count / (time.perf_counter() - begun)
            limit = count / bare(spark, config, count)
        finally:
            spark.stop()
    name = f"log to events, activity and growth, {count:,} events"
    return [Figure(name, rate, "events/s", limit, "Spark, the same from Parquet", "60,000/s")]


@contextmanager
def prepared() -> Iterator[PipelineConfig]:
    with (
        tempfile.TemporaryDirectory(prefix="tristore-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as postgres,
    ):
        url = postgres.start()
        migrate(url)
        yield PipelineConfig(
            database_url=url,
            tables_root=str(Path(folder) / "tables"),
            checkpoint=Path(folder) / "checkpoint",
            java_home=str(java_home(None, Path(folder) / "java")),
            max_events_per_trigger=BATCH,
        )


def append(database_url: str, after: int, through: int) -> None:
    with psycopg.connect(database_url) as conn:
        for start in range(after, through, BATCH):
            append_page(conn, start, min(start + BATCH, through))
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute("VACUUM ANALYZE bus.workflow_events")


def append_page(conn: psycopg.Connection, after: int, through: int) -> None:
    """Numbered under the lock on the head, as every writer of the log must."""
    conn.execute(_sql.move_head, {"through": through})
    conn.execute(_sql.append, {"after": after, "through": through})


def bare(spark: SparkSession, config: PipelineConfig, count: int) -> float:
    """Seconds Spark alone takes from Parquet files of the same rows to the same tables."""
    folder = Path(config.tables_root).with_name("bare")
    span = Span("", WARM, WARM + count)
    for name in (source.NAME, source.ACTIVITY):
        frame(spark, config, name, span).write.parquet(str(folder / name))
    begun = time.perf_counter()
    for feed in feeds(config):
        _write(spark, feed, folder)
    seconds = time.perf_counter() - begun
    shutil.rmtree(folder)
    return seconds


def _write(spark: SparkSession, feed: Feed, folder: Path) -> None:
    rows = feed.rows(spark.read.parquet(str(folder / feed.source)))
    target = str(folder / f"out-{feed.table.name}")
    rows.write.partitionBy(feed.table.partition).parquet(target)
