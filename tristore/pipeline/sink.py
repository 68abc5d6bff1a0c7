"""The foreachBatch writer: Parquet by Spark into the table's folder, then one Delta commit."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from tristore.errors import TristoreError
from tristore.failpoints import failpoint
from tristore.pipeline import log
from tristore.pipeline.checkpoint import Checkpoint, Span
from tristore.pipeline.datafiles import DataFile, describe
from tristore.pipeline.table import Batch, Table


@dataclass(frozen=True, slots=True)
class Sink:
    table: Table
    checkpoint: Checkpoint
    database_url: str

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        span = self.checkpoint.span(batch_id)
        batch = Batch(self.checkpoint.app_id, batch_id, span)
        if len(span) and not self.table.has(batch):
            self._write(frame, batch)
        log.record(self.database_url, log.Position(span.epoch, span.through))

    def _write(self, frame: DataFrame, batch: Batch) -> None:
        failpoint("pipeline.before_write")
        folder = self._folder(batch.batch_id)
        frame.write.mode("errorifexists").partitionBy("day").parquet(str(folder))
        failpoint("pipeline.after_parquet")
        files = describe(self.table.folder, folder, self.table.schema())
        _refuse_other_rows(files, batch.span)
        self.table.append(batch, files)
        failpoint("pipeline.after_delta_commit")

    def _folder(self, batch_id: int) -> Path:
        """A folder no attempt has used: what a killed one left is never taken for ours."""
        _, _, owner = self.checkpoint.app_id.partition(":")
        base = self.table.folder / "data" / owner
        attempt = 0
        while (folder := base / f"{batch_id}-{attempt}").exists():
            attempt += 1
        return folder


def _refuse_other_rows(files: list[DataFile], span: Span) -> None:
    """The log has no gaps, so a batch's rows are known by count and bounds before it is shown."""
    rows = sum(file.rows for file in files)
    first = min((file.first for file in files), default=None)
    last = max((file.last for file in files), default=None)
    if (rows, first, last) != (len(span), span.after + 1, span.through):
        raise TristoreError(
            f"the files hold {rows} events {first}..{last}, but the batch is "
            f"({span.after}, {span.through}]; nothing was committed, run the pipeline again"
        )
