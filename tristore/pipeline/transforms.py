"""What happens to rows on the way: pure functions from DataFrame to DataFrame."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def with_day(events: DataFrame) -> DataFrame:
    """Adds the partition column: the UTC date of `occurred_at`, as a string."""
    # The session's zone is UTC, so formatting needs no conversion.
    return events.withColumn("day", F.date_format("occurred_at", "yyyy-MM-dd"))
