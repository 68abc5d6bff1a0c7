"""A checkpoint that does not belong to the log or the table is refused, and nothing is written."""

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.filestore_story import story
from tristore.errors import CheckpointMismatch, Unavailable
from tristore.pipeline import jobs, source
from tristore.pipeline.actions import act
from tristore.pipeline.checkpoint import Checkpoint
from tristore.pipeline.lifecycle import Lifecycle
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.log import Position
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.sink import Sink
from tristore.pipeline.staged import STAGED, staged_writer
from tristore.pipeline.staged_sink import StagedSink
from tristore.pipeline.tools import Tools


@pytest.fixture
def filled(spark: SparkSession, config: PipelineConfig) -> PipelineConfig:
    log_rows.append(config.database_url, 100)
    jobs.run_available(config, spark)
    return config


def _refused(config: PipelineConfig, spark: SparkSession, reason: str) -> None:
    before = jobs.status(config)
    with pytest.raises(CheckpointMismatch, match=reason):
        jobs.run_available(config, spark)
    assert jobs.status(config) == before


def test_another_epoch_of_the_log(spark: SparkSession, filled: PipelineConfig) -> None:
    log_rows.execute(filled.database_url, "UPDATE bus.ingress_head SET epoch = gen_random_uuid()")
    _refused(filled, spark, "epoch .*restored or another database")


def test_a_log_that_ends_before_the_checkpoint(spark: SparkSession, filled: PipelineConfig) -> None:
    log_rows.execute(filled.database_url, "UPDATE bus.ingress_head SET last = 50")
    _refused(filled, spark, "stands at sequence 100, but the log ends at 50")


def test_a_log_that_was_put_back_and_has_grown_past_the_checkpoint(
    spark: SparkSession, filled: PipelineConfig
) -> None:
    lost = "DELETE FROM bus.workflow_events WHERE ingress_sequence > 90"
    log_rows.execute(filled.database_url, lost)
    log_rows.execute(filled.database_url, "UPDATE bus.ingress_head SET last = 90")
    story(filled.database_url)
    story(filled.database_url)
    log_rows.append(filled.database_url, 100)
    renumbered = "UPDATE bus.workflow_events SET id = id || '-anew' WHERE ingress_sequence > 90"
    log_rows.execute(filled.database_url, renumbered)
    _refused(filled, spark, "event 100 of the log is event-100-anew, but event-100 in table events")


def test_a_damaged_file_keeps_no_new_rows_out(spark: SparkSession, filled: PipelineConfig) -> None:
    for file in Path(filled.tables_root, "events").glob("data/**/*.parquet"):
        file.write_bytes(file.read_bytes()[:100])
    log_rows.append(filled.database_url, 10)
    jobs.run_available(filled, spark)
    assert jobs.status(filled)["throughSequence"] == 110


def test_a_lost_checkpoint(spark: SparkSession, filled: PipelineConfig) -> None:
    shutil.rmtree(filled.checkpoint)
    _refused(filled, spark, "table events ends at sequence 100, but the checkpoint at 0")


def test_an_old_copy_of_the_checkpoint(
    spark: SparkSession, filled: PipelineConfig, tmp_path: Path
) -> None:
    shutil.copytree(filled.checkpoint, tmp_path / "copy")
    log_rows.append(filled.database_url, 100)
    jobs.run_available(filled, spark)
    shutil.rmtree(filled.checkpoint)
    shutil.copytree(tmp_path / "copy", filled.checkpoint)
    _refused(filled, spark, "table events ends at sequence 200, but the checkpoint at 100")


def test_a_lost_table(spark: SparkSession, filled: PipelineConfig) -> None:
    shutil.rmtree(Path(filled.tables_root, "events"))
    _refused(filled, spark, "table events ends at sequence 0, but the checkpoint at 100")


def test_a_disk_that_is_not_mounted(spark: SparkSession, filled: PipelineConfig) -> None:
    """Nothing is written in its place, neither by a start nor by what runs already."""
    root = Path(filled.tables_root)
    checkpoint = Checkpoint.open(filled.checkpoint / STAGED, STAGED, Position("", 0))
    log_rows.append(filled.database_url, 10)
    root.rename(root.with_name("elsewhere"))
    root.mkdir()
    for attempt in (
        lambda: jobs.run_available(filled, spark),
        lambda: staged_writer(spark, filled),
        lambda: Sink([], checkpoint, filled)(spark.range(0), 0),
        lambda: StagedSink(checkpoint, filled, TableLocks())(spark.range(0), 0),
        lambda: Lifecycle(spark, filled).step(),
        lambda: act(Tools(spark, filled), "vacuum", {}, lambda done, total: None),
    ):
        with pytest.raises(Unavailable, match="is its disk mounted"):
            attempt()
    assert list(root.iterdir()) == []
    root.rmdir()
    root.with_name("elsewhere").rename(root)
    jobs.run_available(filled, spark)
    assert jobs.status(filled)["rows"] == 110


def test_events_removed_behind_the_pipeline(spark: SparkSession, filled: PipelineConfig) -> None:
    log_rows.append(filled.database_url, 100)
    log_rows.execute(
        filled.database_url, "DELETE FROM bus.workflow_events WHERE ingress_sequence = 150"
    )
    _refused(filled, spark, "the log has 99 of the 100 events")


def test_the_source_refuses_by_itself(
    spark: SparkSession, config: PipelineConfig, tmp_path: Path
) -> None:
    log_rows.append(config.database_url, 10)
    _drain(spark, config, tmp_path / "own")
    log_rows.execute(config.database_url, "UPDATE bus.ingress_head SET epoch = gen_random_uuid()")
    with pytest.raises(StreamingQueryException, match="CheckpointMismatch"):
        _drain(spark, config, tmp_path / "own")


def _drain(spark: SparkSession, config: PipelineConfig, checkpoint: Path) -> None:
    options = source.Options(config.database_url).as_strings()
    stream = spark.readStream.format(source.NAME).options(**options).load()
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
