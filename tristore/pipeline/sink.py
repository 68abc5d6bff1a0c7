"""The foreachBatch writer: Parquet by Spark to where each table lies, then a Delta commit each."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from tristore.failpoints import failpoint
from tristore.pipeline import log, source, writing
from tristore.pipeline.checkpoint import Checkpoint, Span
from tristore.pipeline.datafiles import DataFile
from tristore.pipeline.feeds import Feed, frame
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.table import Batch
from tristore.timestore import root


@dataclass(frozen=True, slots=True)
class Sink:
    feeds: Sequence[Feed]
    checkpoint: Checkpoint
    config: PipelineConfig
    locks: TableLocks = field(default_factory=TableLocks)

    def __call__(self, events: DataFrame, batch_id: int) -> None:
        root.check(self.config.database_url, self.config.tables)
        span = self.checkpoint.span(batch_id)
        if len(span):
            with self._sources(events, span) as given:
                self.write(given, batch_id, span)
        log.record(self.config.database_url, log.Position(span.epoch, span.through))
        failpoint("pipeline.before_spark_commit")

    def write(self, given: Mapping[str, DataFrame], batch_id: int, span: Span) -> None:
        """Brings a range, given by source, into every table that lacks it; those that have it are
        left alone."""
        missing = [
            (feed, batch)
            for feed in self.feeds
            if not feed.table.has(batch := self._batch(feed, batch_id, span))
        ]
        failpoint("pipeline.before_write")
        written = self._write_all(given, missing)
        failpoint("pipeline.after_parquet")
        for (feed, batch), files in zip(missing, written, strict=True):
            with self.locks.of(feed.table.name):
                feed.table.append(batch, files)
            failpoint("pipeline.after_delta_commit")
        names = [feed.table.name for feed in self.feeds]
        reached = log.Position(span.epoch, span.through)
        log.record_fed(self.config.database_url, names, reached, span.after)

    @contextmanager
    def _sources(self, events: DataFrame, span: Span) -> Iterator[Mapping[str, DataFrame]]:
        if all(feed.source == source.NAME for feed in self.feeds):
            yield {source.NAME: events}
            return
        # Planned once for all tables made from it, since planning starts a Python process; kept,
        # so that it is read once.
        activity = frame(events.sparkSession, self.config, source.ACTIVITY, span).persist()
        try:
            yield {source.NAME: events, source.ACTIVITY: activity}
        finally:
            activity.unpersist()

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
        # A name no attempt has used: what a killed one left is never taken for ours.
        name = f"{self.checkpoint.owner}/{batch.batch_id}-{uuid.uuid4().hex}"
        files = writing.write(feed.rows(given), feed.table, name)
        feed.check(files, batch.span)
        return files
