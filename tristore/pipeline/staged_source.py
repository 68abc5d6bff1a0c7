"""The Spark data source over staged batches: offsets are their numbers, rows their ids."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tristore.pipeline import batches
from tristore.pipeline.log import Position
from tristore.pipeline.source import SequenceRange

NAME = "tristore_staged"


@dataclass(frozen=True, slots=True)
class Options:
    database_url: str = field(repr=False)
    max_rows: int
    initial: int

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "Options":
        return cls(given["database_url"], int(given["max_rows"]), int(given["initial"]))

    def as_strings(self) -> dict[str, str]:
        return {name: str(getattr(self, name)) for name in self.__slots__}


class StagedSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "id bigint"

    def streamReader(self, schema: StructType) -> "StagedStreamReader":
        return StagedStreamReader(Options.parse(self.options))


class StagedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans which batches come next. Their rows differ by dataset, so the sink reads each
    dataset's files as a frame of its own."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.target: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        head = batches.head(self.options.database_url)
        return Position(head.epoch, self.options.initial).as_offset()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.options.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = batches.head(self.options.database_url).sequence

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        head, position = batches.head(self.options.database_url), Position.of_offset(start)
        batches.refuse_foreign(head, position)
        end = head.sequence if self.target is None else min(head.sequence, self.target)
        if end > position.sequence:
            rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self.options.max_rows
            end = batches.reach(self.options.database_url, position.sequence, end, rows)
        return Position(head.epoch, max(end, position.sequence)).as_offset()

    def reportLatestOffset(self) -> dict[str, Any]:
        return batches.head(self.options.database_url).as_offset()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        after, through = Position.of_offset(start), Position.of_offset(end)
        # A restarted query plans its last batch from the checkpoint without asking latestOffset.
        batches.refuse_foreign(batches.head(self.options.database_url), through)
        return [SequenceRange(after.sequence, through.sequence)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        assert isinstance(partition, SequenceRange)
        return ((number,) for number in range(partition.after + 1, partition.through + 1))
