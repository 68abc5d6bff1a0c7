"""The line from the log to the table, seen by every engine that may read it."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.tables import ask
from tests.support.database import value
from tristore.pipeline import jobs, source, transforms
from tristore.pipeline.session import PipelineConfig

COUNTS = "SELECT count(*), count(DISTINCT id), min(ingress_sequence), max(ingress_sequence)"


def test_each_event_is_in_the_table_once_for_every_engine(
    spark: SparkSession, config: PipelineConfig
) -> None:
    log_rows.append(config.database_url, 1000)
    jobs.run_available(config, spark)

    assert ask(config.tables, f"{COUNTS} FROM events") == [[1000, 1000, 1, 1000]]
    table = _table(config)
    assert table.version() == 1
    rows = table.to_pyarrow_table()
    assert (len(rows), len(rows["id"].unique())) == (1000, 1000)
    frame = spark.read.parquet(*map(unquote, table.file_uris()))
    assert (frame.count(), frame.select("id").distinct().count()) == (1000, 1000)
    assert jobs.status(config) == {
        "dataset": "events",
        "tableVersion": 1,
        "throughSequence": 1000,
        "rows": 1000,
        "files": len(table.file_uris()),
    }


def test_rows_are_exact_to_the_microsecond_and_to_the_byte(
    spark: SparkSession, config: PipelineConfig
) -> None:
    log_rows.append(config.database_url, 1000)
    jobs.run_available(config, spark)

    files = [unquote(uri) for uri in _table(config).file_uris()]
    times = {pq.read_schema(file).field("occurred_at").type for file in files}
    assert times == {pa.timestamp("us", tz="UTC")}
    columns = (
        "id, type, source, occurred_at, received_at, ingress_sequence, payload::text, "
        "correlation_id, ttl_ms, metadata::text, schema_version, body_hash"
    )
    logged = log_rows.fetch(
        config.database_url, f"SELECT {columns} FROM bus.workflow_events ORDER BY ingress_sequence"
    )
    rows = _table(config).to_pyarrow_table().sort_by("ingress_sequence")
    found = [tuple(row.values()) for row in rows.drop_columns(["day"]).to_pylist()]
    assert found == logged
    days = {(row["occurred_at"].strftime("%Y-%m-%d"), row["day"]) for row in rows.to_pylist()}
    assert days == {("2026-03-01", "2026-03-01"), ("2026-03-02", "2026-03-02")}


def test_a_limit_splits_the_log_into_batches_with_their_ranges_in_the_commits(
    spark: SparkSession, config: PipelineConfig
) -> None:
    log_rows.append(config.database_url, 1000)
    jobs.run_available(replace(config, max_events_per_trigger=300), spark)

    commits = [commit for commit in _table(config).history() if "batchId" in commit]
    ranges = [(c["batchId"], c["fromSequence"], c["throughSequence"]) for c in reversed(commits)]
    assert ranges == [(0, 0, 300), (1, 300, 600), (2, 600, 900), (3, 900, 1000)]
    with psycopg.connect(config.database_url) as conn:
        (epoch,) = conn.execute("SELECT epoch::text FROM bus.ingress_head").fetchone() or ("",)
    assert {commit["epoch"] for commit in commits} == {epoch}
    cursor = "SELECT sequence FROM bus.cursors WHERE consumer = 'tristore.pipeline'"
    assert value(config.database_url, cursor) == 1000  # retention stays behind it


def test_statistics_let_readers_skip_files_without_losing_rows(
    spark: SparkSession, config: PipelineConfig
) -> None:
    log_rows.append(config.database_url, 1000)
    jobs.run_available(config, spark)

    table = _table(config)
    actions = pa.table(table.get_add_actions(flatten=True))
    assert "min.day" not in actions.column_names
    for sequence in (1, 200, 201, 777, 1000):
        found = table.to_pyarrow_table(filters=[("ingress_sequence", "=", sequence)])
        assert found["id"].to_pylist() == [f"event-{sequence}"]


def test_nothing_new_commits_nothing(spark: SparkSession, config: PipelineConfig) -> None:
    jobs.run_available(config, spark)
    assert jobs.status(config)["rows"] == 0
    log_rows.append(config.database_url, 10)
    jobs.run_available(config, spark)
    before = jobs.status(config)
    jobs.run_available(config, spark)
    assert jobs.status(config) == before
    assert (before["rows"], before["throughSequence"]) == (10, 10)


def test_any_range_of_the_log_can_be_read_as_a_batch(
    spark: SparkSession, config: PipelineConfig
) -> None:
    log_rows.append(config.database_url, 500)
    options = source.Options(config.database_url, partition_rows=70, after=100, through=400)
    rows = spark.read.format(source.NAME).options(**options.as_strings()).load()
    found = [row.ingress_sequence for row in rows.select("ingress_sequence").collect()]
    assert sorted(found) == list(range(101, 401))


def test_the_day_of_an_event_is_its_utc_date(spark: SparkSession) -> None:
    times = ["2026-03-01T23:59:59.999999+00:00", "2026-03-02T00:30:00+01:00"]
    rows = [(datetime.fromisoformat(time),) for time in times]
    frame = transforms.with_day(spark.createDataFrame(rows, "occurred_at timestamp"))
    assert [row.day for row in frame.collect()] == ["2026-03-01", "2026-03-01"]


def _table(config: PipelineConfig) -> DeltaTable:
    return DeltaTable(Path(config.tables_root) / "events")
