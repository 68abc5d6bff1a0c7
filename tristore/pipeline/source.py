"""The Spark data sources over the log: events as a stream or a range, and filestore activity."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tristore.pipeline import log
from tristore.pipeline.log import Position

if TYPE_CHECKING:
    from pyarrow import RecordBatch

NAME = "tristore_log"
ACTIVITY = "tristore_activity"


@dataclass(frozen=True, slots=True)
class Options:
    """`after` and `through` bound a batch read; a stream starts from `initial`."""

    database_url: str = field(repr=False)
    max_events: int = 100_000
    partition_rows: int = 25_000
    initial: int | None = None
    after: int | None = None
    through: int | None = None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "Options":
        numbers = ("max_events", "partition_rows", "initial", "after", "through")
        found = {name: int(given[name]) for name in numbers if name in given}
        return cls(database_url=given["database_url"], **found)

    def as_strings(self) -> dict[str, str]:
        pairs = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: str(value) for name, value in pairs if value is not None}


class SequenceRange(InputPartition):
    """The events of `(after, through]`: what one task reads."""

    def __init__(self, after: int, through: int) -> None:
        self.after = after
        self.through = through


def split(after: int, through: int, rows: int) -> list[SequenceRange]:
    starts = range(after, through, rows)
    return [SequenceRange(start, min(start + rows, through)) for start in starts]


class LogSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return log.SCHEMA

    def reader(self, schema: StructType) -> "LogReader":
        return LogReader(Options.parse(self.options))

    def streamReader(self, schema: StructType) -> "LogStreamReader":
        return LogStreamReader(Options.parse(self.options))


class LogReader(DataSourceReader):
    def __init__(self, options: Options) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        head = log.head(self.options.database_url)
        after = head.earliest - 1 if self.options.after is None else self.options.after
        through = head.last if self.options.through is None else self.options.through
        head.refuse_foreign(Position(head.epoch, after))
        head.refuse_foreign(Position(head.epoch, through))
        # A reader must have a partition, or Spark plans one with nothing in it.
        return split(after, through, self.options.partition_rows) or [SequenceRange(after, after)]

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        return _rows(self.options, partition)


class ActivitySource(DataSource):
    """Any range of the log as rows of filestore activity."""

    @classmethod
    def name(cls) -> str:
        return ACTIVITY

    def schema(self) -> str:
        return log.ACTIVITY_SCHEMA

    def reader(self, schema: StructType) -> "ActivityReader":
        return ActivityReader(Options.parse(self.options))


class ActivityReader(LogReader):
    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        assert isinstance(partition, SequenceRange)
        return log.read_activity(self.options.database_url, partition.after, partition.through)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Planning runs in one Python process of the driver, `read` on pickled copies in executors."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.target: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        head = log.head(self.options.database_url)
        initial = head.earliest - 1 if self.options.initial is None else self.options.initial
        return Position(head.epoch, initial).as_offset()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_events)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = log.head(self.options.database_url).last

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        head = log.head(self.options.database_url)
        position = Position.of_offset(start)
        head.refuse_foreign(position)
        end = head.last if self.target is None else min(head.last, self.target)
        if isinstance(limit, ReadMaxRows):
            end = min(end, position.sequence + limit.max_rows)
        return Position(head.epoch, max(end, position.sequence)).as_offset()

    def reportLatestOffset(self) -> dict[str, Any]:
        head = log.head(self.options.database_url)
        return Position(head.epoch, head.last).as_offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        head = log.head(self.options.database_url)
        after, through = Position.of_offset(start), Position.of_offset(end)
        # A restarted query plans its last batch from the checkpoint without asking latestOffset.
        head.refuse_foreign(after)
        head.refuse_foreign(through)
        return split(after.sequence, through.sequence, self.options.partition_rows)

    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        return _rows(self.options, partition)


def _rows(options: Options, partition: InputPartition) -> Iterator["RecordBatch"]:
    assert isinstance(partition, SequenceRange)
    return log.read(options.database_url, partition.after, partition.through)
