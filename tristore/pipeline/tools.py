"""What every job of the upkeep works with."""

from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from tristore.pipeline.locks import TableLocks
from tristore.pipeline.session import PipelineConfig


@dataclass(frozen=True, slots=True)
class Tools:
    spark: SparkSession
    config: PipelineConfig
    locks: TableLocks = field(default_factory=TableLocks)
