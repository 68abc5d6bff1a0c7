"""Before the stream starts: makes a feed's table, and brings one that is behind to the others."""

from deltalake import Schema
from pyspark.sql import SparkSession

from tristore.pipeline import log, source
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.feeds import EVENTS, Feed, frame
from tristore.pipeline.sink import Sink


def prepare(spark: SparkSession, sink: Sink, feed: Feed) -> None:
    """A table that was not fed for a while (new, or switched off) gets what it lacks in one batch;
    any other that does not end where the checkpoint does is refused."""
    if feed.table.name == EVENTS or _behind(sink, feed) is None:
        feed.table.refuse_foreign(sink.checkpoint)
    if not feed.table.exists():
        _create(spark, sink, feed)
    if feed.table.name != EVENTS and (span := _behind(sink, feed)):
        number = sink.checkpoint.last_finished()
        assert number is not None
        alone = Sink([feed], sink.checkpoint, sink.config)
        alone.write(frame(spark, sink.config, source.NAME, span), number, span)


def _create(spark: SparkSession, sink: Sink, feed: Feed) -> None:
    empty = Span("", 0, 0)
    columns = feed.rows(frame(spark, sink.config, feed.source, empty)).schema
    feed.table.create(Schema.from_json(columns.json()))


def _behind(sink: Sink, feed: Feed) -> Span | None:
    """What lies between the end of the table and the end of the last finished batch."""
    finished = sink.checkpoint.finished()
    through = feed.table.through() if feed.table.exists() else None
    start = sink.checkpoint.initial.sequence if through is None else through
    if start >= finished.sequence:
        return None
    log.head(sink.config.database_url).refuse_foreign(log.Position(finished.epoch, start))
    return Span(finished.epoch, start, finished.sequence)
