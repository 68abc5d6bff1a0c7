"""The second query of the driver: staged batches into the tables of their datasets."""

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tristore.pipeline import batches, staged_source
from tristore.pipeline.checkpoint import Checkpoint
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.log import Position
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.staged_sink import StagedSink
from tristore.timestore import root

STAGED = "staged"


def staged_writer(
    spark: SparkSession, config: PipelineConfig, locks: TableLocks | None = None
) -> DataStreamWriter:
    """Ready to be started with a trigger, as the query of the log is."""
    root.check(config.database_url, config.tables)
    spark.dataSource.register(staged_source.StagedSource)
    head = batches.head(config.database_url)
    folder = config.checkpoint / STAGED
    start = Position(head.epoch, batches.start(config.database_url))
    checkpoint = Checkpoint.open(folder, STAGED, start)
    batches.refuse_foreign(head, checkpoint.planned())
    options = staged_source.Options(
        config.database_url, config.max_ingest_rows_per_trigger, checkpoint.initial.sequence
    )
    stream = spark.readStream.format(staged_source.NAME).options(**options.as_strings()).load()
    writer = stream.writeStream.queryName(STAGED).option("checkpointLocation", str(folder))
    return writer.foreachBatch(StagedSink(checkpoint, config, locks or TableLocks()))
