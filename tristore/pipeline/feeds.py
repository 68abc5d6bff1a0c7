"""The tables the log feeds: how each gets its rows, and how they are counted before they show."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from tristore.errors import TristoreError
from tristore.pipeline import log, source, transforms
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.datafiles import DataFile
from tristore.pipeline.growth import growth
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.table import Table

EVENTS, ACTIVITY, GROWTH = "events", "filestore_activity", "filestore_growth"


@dataclass(frozen=True, slots=True)
class Feed:
    """`rows` takes the frames of a range by source; `check` refuses files that hold other rows."""

    table: Table
    source: str
    rows: Callable[[DataFrame], DataFrame]
    check: Callable[[list[DataFile], Span], None]


def feeds(config: PipelineConfig) -> list[Feed]:
    """The archive first: it is what the others could be made from again."""
    tables = config.tables

    def count_activity(files: list[DataFile], span: Span) -> None:
        wanted = log.count_activity(config.database_url, span.after, span.through)
        _refuse_count(files, wanted, span)

    archive = Feed(
        Table(EVENTS, tables.child(EVENTS)),
        source.NAME,
        transforms.with_day,
        _refuse_other_events,
    )
    if not config.filestore_sync:
        return [archive]
    return [
        archive,
        Feed(
            Table(ACTIVITY, tables.child(ACTIVITY)),
            source.ACTIVITY,
            transforms.with_day,
            count_activity,
        ),
        Feed(
            Table(GROWTH, tables.child(GROWTH), "month"),
            source.ACTIVITY,
            lambda rows: growth(rows, config.growth_depth),
            lambda files, span: None,
        ),
    ]


def frame(spark: SparkSession, config: PipelineConfig, format: str, span: Span) -> DataFrame:
    """The rows of a range, read by tasks of their own."""
    options = source.Options(
        database_url=config.database_url,
        partition_rows=config.partition_rows,
        after=span.after,
        through=span.through,
    )
    return spark.read.format(format).options(**options.as_strings()).load()


def _refuse_other_events(files: list[DataFile], span: Span) -> None:
    """The log has no gaps, so a batch's rows are known by count and bounds before it is shown."""
    _refuse_count(files, len(span), span)
    first = min((file.low["ingress_sequence"] for file in files), default=None)
    last = max((file.high["ingress_sequence"] for file in files), default=None)
    if (first, last) != (span.after + 1, span.through):
        raise TristoreError(
            f"the files hold events {first}..{last}, but the batch is "
            f"({span.after}, {span.through}]; nothing was committed, run the pipeline again"
        )


def _refuse_count(files: list[DataFile], wanted: int, span: Span) -> None:
    if (rows := sum(file.rows for file in files)) != wanted:
        raise TristoreError(
            f"the files hold {rows} rows, but ({span.after}, {span.through}] makes {wanted}; "
            "nothing was committed, run the pipeline again"
        )
