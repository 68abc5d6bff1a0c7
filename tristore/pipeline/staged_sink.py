"""The foreachBatch writer of staged batches: each dataset's files into its table, once."""

import logging
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from deltalake import Field, Schema
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tristore.errors import TristoreError
from tristore.failpoints import failpoint
from tristore.pipeline import batches, log_checkpoints, staged_files, staged_sweep, writing
from tristore.pipeline.batches import Waiting
from tristore.pipeline.checkpoint import Checkpoint, Span
from tristore.pipeline.datafiles import DataFile
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.table import Batch, Table
from tristore.timestore import root
from tristore.timestore.schemas import Column

PARTITION = "_partition"
# Without ':', which folders on some systems cannot have.
_PATTERNS = {"hour": "yyyy-MM-dd'T'HH", "day": "yyyy-MM-dd", "month": "yyyy-MM"}
# Small batches make one file a partition; large ones are written by several tasks.
_TASK_ROWS = 250_000
_DATASETS_AT_ONCE = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StagedSink:
    checkpoint: Checkpoint
    config: PipelineConfig
    locks: TableLocks
    sweep: staged_sweep.Sweep = field(default_factory=staged_sweep.Sweep)

    def __call__(self, numbers: DataFrame, batch_id: int) -> None:
        # For every batch: a table that is not there is made, and a disk may go at any time.
        root.check(self.config.database_url, self.config.tables)
        span, spark = self.checkpoint.span(batch_id), numbers.sparkSession
        groups = batches.waiting(self.config.database_url, span)
        failpoint("staged.before_write")
        with ThreadPoolExecutor(_DATASETS_AT_ONCE) as pool:
            jobs = [pool.submit(self._bring, spark, batch_id, span, group) for group in groups]
            for job in jobs:
                job.result()
        self.sweep(self.config)

    def _bring(self, spark: SparkSession, batch_id: int, span: Span, given: list[Waiting]) -> None:
        """What the table has is known by the number it ends with, which is in the same commit as
        the rows: neither a repeated batch nor a lost checkpoint brings rows twice."""
        group = [batch for batch in given if batch.wanted]
        self._fail([batch for batch in given if not batch.wanted], "the dataset was deleted")
        if not group:
            return
        table = Table(group[0].folder, self.config.tables.child(group[0].folder), PARTITION)
        with self.locks.of(table.name):
            _prepare(table, group[-1].columns)
        through = table.through() or 0
        missing = [batch for batch in group if batch.id > through]
        if missing and (written := self._written(spark, table, missing)):
            files, kept = written
            failpoint("staged.after_parquet")
            reached = Span(span.epoch, through, missing[-1].id)
            with self.locks.of(table.name):
                table.append(Batch(self.checkpoint.app_of(table.name), batch_id, reached), files)
            failpoint("staged.after_delta_commit")
            group = [batch for batch in group if batch.id <= through] + kept
        version = table.place.table().version()
        batches.commit(self.config.database_url, [batch.id for batch in group], version)

    def _written(
        self, spark: SparkSession, table: Table, missing: list[Waiting]
    ) -> tuple[list[DataFile], list[Waiting]] | None:
        """The files and the batches in them; what is damaged is left out and told."""
        try:
            return self._write(spark, table, missing), missing
        except (PySparkException, Py4JError) as error:
            kept = self._without_damaged(missing)
            if len(kept) == len(missing):
                raise
            _log.error("staged files of %s are damaged: %s", table.name, type(error).__name__)
            return (self._write(spark, table, kept), kept) if kept else None

    def _write(
        self, spark: SparkSession, table: Table, missing: Sequence[Waiting]
    ) -> list[DataFile]:
        rows = sum(batch.rows for batch in missing)
        columns = _struct(missing[-1].columns)
        frame = staged_files.frame(
            spark, self.config.tables, [batch.file for batch in missing], columns
        )
        partition = F.date_format(missing[-1].time_column, _PATTERNS[missing[-1].granularity])
        frame = frame.coalesce(max(1, rows // _TASK_ROWS)).withColumn(PARTITION, partition)
        # Whoever writes has few files open then; Spark itself would ask for the same order.
        frame = frame.sortWithinPartitions(PARTITION)
        # A name no attempt has used: what a killed one left is never taken for ours.
        name = f"{self.checkpoint.owner}/{missing[-1].id}-{uuid.uuid4().hex}"
        files = writing.write(frame, table, name)
        if (found := sum(file.rows for file in files)) != rows:
            raise TristoreError(
                f"the files of {table.name} hold {found} rows, but {rows} were staged; nothing "
                "was committed, run the pipeline again"
            )
        return files

    def _without_damaged(self, missing: list[Waiting]) -> list[Waiting]:
        kept = []
        for batch in missing:
            if damage := staged_files.damage(self.config.tables, batch.file):
                self._fail([batch], damage)
            else:
                kept.append(batch)
        return kept

    def _fail(self, given: list[Waiting], error: str) -> None:
        if given:
            batches.fail(self.config.database_url, [batch.id for batch in given], error)


def _prepare(table: Table, columns: Sequence[Column]) -> None:
    """Makes the table, or gives it the columns the dataset has got meanwhile: nullable ones, so
    that doing only this and no more leaves a table as good as before."""
    wanted = Schema.from_json(_struct([*columns, Column(PARTITION, "string")]).json())
    if not table.exists():
        table.create(wanted)
    known = {column.name for column in table.schema().fields}
    new: list[Field] = [column for column in wanted.fields if column.name not in known]
    if new:
        table.place.table().alter.add_columns(new, post_commithook_properties=log_checkpoints.NONE)


def _struct(columns: Sequence[Column]) -> StructType:
    """All nullable: what must not be null was checked where the rows came in."""
    fields = [StructField(column.name, _SPARK[column.type]) for column in columns]
    return StructType(fields)


_SPARK: dict[str, DataType] = {
    "timestamp": TimestampType(),
    "string": StringType(),
    "double": DoubleType(),
    "long": LongType(),
    "boolean": BooleanType(),
    "date": DateType(),
}
