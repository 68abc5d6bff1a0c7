"""The foreachBatch writer: Parquet by Spark into each table's folder, then a Delta commit each."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from tristore.failpoints import failpoint
from tristore.pipeline import log, source
from tristore.pipeline.checkpoint import Checkpoint, Span
from tristore.pipeline.datafiles import DataFile, describe
from tristore.pipeline.feeds import Feed, frame
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.table import Batch


@dataclass(frozen=True, slots=True)
class Sink:
    feeds: Sequence[Feed]
    checkpoint: Checkpoint
    config: PipelineConfig

    def __call__(self, events: DataFrame, batch_id: int) -> None:
        span = self.checkpoint.span(batch_id)
        if len(span):
            self.write(events, batch_id, span)
        log.record(self.config.database_url, log.Position(span.epoch, span.through))

    def write(self, events: DataFrame, batch_id: int, span: Span) -> None:
        """Brings a range into every table that lacks it; those that have it are left alone."""
        missing = [
            (feed, batch)
            for feed in self.feeds
            if not feed.table.has(batch := self._batch(feed, batch_id, span))
        ]
        failpoint("pipeline.before_write")
        # Planned once for all tables made from it, since planning starts a Python process; kept,
        # so that it is read once.
        activity = frame(events.sparkSession, self.config, source.ACTIVITY, span).persist()
        given = {source.NAME: events, source.ACTIVITY: activity}
        try:
            written = self._write_all(given, missing)
        finally:
            activity.unpersist()
        failpoint("pipeline.after_parquet")
        for (feed, batch), files in zip(missing, written, strict=True):
            feed.check(files, span)
            feed.table.append(batch, files)
            failpoint("pipeline.after_delta_commit")

    def _batch(self, feed: Feed, batch_id: int, span: Span) -> Batch:
        return Batch(self.checkpoint.app_of(feed.table.name), batch_id, span)

    def _write_all(
        self, given: Mapping[str, DataFrame], missing: Sequence[tuple[Feed, Batch]]
    ) -> list[list[DataFile]]:
        """Each table is a Spark job: side by side, a small batch waits for one and not for all."""
        with ThreadPoolExecutor(len(self.feeds)) as pool:
            jobs = [
                pool.submit(self._write, given[feed.source], feed, batch) for feed, batch in missing
            ]
            return [job.result() for job in jobs]

    def _write(self, given: DataFrame, feed: Feed, batch: Batch) -> list[DataFile]:
        table, folder = feed.table, self._folder(feed, batch.batch_id)
        rows = feed.rows(given).write.mode("errorifexists").partitionBy(table.partition)
        rows.parquet(str(folder))
        return describe(table.folder, folder, table.schema(), table.partition)

    def _folder(self, feed: Feed, batch_id: int) -> Path:
        """A folder no attempt has used: what a killed one left is never taken for ours."""
        base = feed.table.folder / "data" / self.checkpoint.owner
        attempt = 0
        while (folder := base / f"{batch_id}-{attempt}").exists():
            attempt += 1
        return folder
