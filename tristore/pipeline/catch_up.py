"""Before the stream starts: makes a feed's table, and brings one that is behind to the others."""

from dataclasses import replace

from deltalake import Schema
from pyspark.sql import DataFrame, SparkSession

from tristore.pipeline import history, log, same_history, source
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.feeds import EVENTS, Feed, frame
from tristore.pipeline.history import Range
from tristore.pipeline.sink import Sink
from tristore.pipeline.tools import Tools

_COLUMNS = {source.NAME: log.SCHEMA, source.ACTIVITY: log.ACTIVITY_SCHEMA}


def prepare(spark: SparkSession, sink: Sink, feed: Feed) -> None:
    """A table that was not fed for a while (new, or switched off) gets what it lacks in one batch;
    any other that does not end where the checkpoint does is refused."""
    if feed.table.name == EVENTS:
        same_history.check(sink.config.database_url, feed.table)
    if feed.table.name == EVENTS or _behind(sink, feed) is None:
        feed.table.refuse_foreign(sink.checkpoint)
    if not feed.table.exists():
        _create(spark, feed)
    if feed.table.name != EVENTS and (span := _behind(sink, feed)):
        _bring(spark, sink, feed, span)


def _create(spark: SparkSession, feed: Feed) -> None:
    # Not read from the source: that would start a Python process only to learn what is known.
    empty = spark.createDataFrame([], _COLUMNS[feed.source])
    feed.table.create(Schema.from_json(feed.rows(empty).schema.json()))


def _behind(sink: Sink, feed: Feed) -> Span | None:
    """What lies between the end of the table and the end of the last finished batch."""
    finished = sink.checkpoint.finished()
    through = feed.table.through() if feed.table.exists() else None
    start = sink.checkpoint.initial.sequence if through is None else through
    if start >= finished.sequence:
        return None
    head = log.head(sink.config.database_url)
    # What the log no longer keeps is in the archive.
    head.refuse_foreign(log.Position(finished.epoch, max(start, head.earliest - 1)))
    return Span(finished.epoch, start, finished.sequence)


def _bring(spark: SparkSession, sink: Sink, feed: Feed, span: Span) -> None:
    number = sink.checkpoint.last_finished()
    assert number is not None
    rows: DataFrame
    if span.after + 1 >= log.head(sink.config.database_url).earliest:
        rows = frame(spark, sink.config, feed.source, span)
    else:
        tools = Tools(spark, sink.config, sink.locks)
        rows = history.activity(tools, Range(span.after, span.through))
        # The log cannot tell how many rows its former events make.
        feed = replace(feed, check=lambda files, span: None)
    alone = Sink([feed], sink.checkpoint, sink.config, sink.locks)
    alone.write({feed.source: rows}, number, span)
