"""Storage growth: what each hour brought to and took from every folder, as partial sums."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

# What a row of activity counts as; reconciliations are told apart by their outcome.
_COUNTS = {
    "created": """type IN ('filestore.node.created', 'filestore.node.copied',
        'filestore.nodes.imported')
        OR type = 'filestore.node.reconciled' AND outcome IN ('created', 'restored')""",
    "updated": """type = 'filestore.node.updated'
        OR type = 'filestore.node.reconciled' AND outcome = 'updated'""",
    "deleted": "type IN ('filestore.node.deleted', 'filestore.node.missing')",
    "moved": "type = 'filestore.node.moved'",
}
SUMS = ("bytes_in", "bytes_out", "net_bytes", *_COUNTS)
KEYS = ("hour", "mount", "prefix", "depth", "month")


def growth(activity: DataFrame, depth: int) -> DataFrame:
    """Partial sums by hour, mount and folder down to `depth`; the empty prefix is the mount."""
    files = activity.where("kind = 'file' AND size_delta IS NOT NULL")
    # Summed by the deepest folder before it is shared out: a row a folder and hour, not a row an
    # event, is then taken apart.
    summed = files.groupBy(
        F.date_trunc("hour", "occurred_at").alias("hour"),
        "mount",
        _folder("path", depth).alias("new"),
        _folder("previous_path", depth).alias("old"),
    ).agg(
        F.expr("try_sum(greatest(size_delta, 0L))").alias("bytes_in"),
        F.expr("try_sum(greatest(-size_delta, 0L))").alias("bytes_out"),
        F.try_sum("size_bytes").alias("moved_bytes"),
        *(F.expr(f"count_if({condition})").alias(name) for name, condition in _COUNTS.items()),
    )
    shared = summed.select("hour", "mount", F.explode(_shares()).alias("share"), *_COUNTS)
    parts = shared.select(
        "hour",
        "mount",
        "share.*",
        F.expr("share.bytes_in - share.bytes_out").alias("net_bytes"),
        *_COUNTS,
    )
    parts = parts.withColumn(
        "depth", F.when(F.col("prefix") == "", 0).otherwise(F.size(F.split("prefix", "/")))
    )
    return merged(parts.withColumn("month", F.date_format("hour", "yyyy-MM")))


def merged(partial: DataFrame) -> DataFrame:
    """One row a key; sums of sums are sums, so partial rows may be merged at any time. What no sum
    can hold is null: it must not hold up everything that comes after it."""
    sums = (F.try_sum(name).alias(name) for name in SUMS)
    return partial.groupBy(*KEYS).agg(*sums).select(*KEYS[:4], *SUMS, "month")


def _shares() -> Column:
    """What each folder on the way to files got and gave.

    A file that moved inside its mount left the folders it is no longer under: only to them, and to
    those it came under, did bytes go.
    """
    new, old, moved = _prefixes("new"), _prefixes("old"), F.col("moved_bytes")
    came = F.transform(F.array_except(new, old), lambda p: _share(p, moved, _none()))
    left = F.transform(F.array_except(old, new), lambda p: _share(p, _none(), moved))
    stayed = F.transform(F.array_intersect(new, old), lambda p: _share(p, _none(), _none()))
    plain = F.transform(new, lambda p: _share(p, F.col("bytes_in"), F.col("bytes_out")))
    return F.when(F.col("old").isNull(), plain).otherwise(F.concat(came, left, stayed))


def _share(prefix: Column, bytes_in: Column, bytes_out: Column) -> Column:
    return F.struct(
        prefix.alias("prefix"), bytes_in.alias("bytes_in"), bytes_out.alias("bytes_out")
    )


def _none() -> Column:
    return F.lit(0).cast("long")


def _folder(path: str, depth: int) -> Column:
    """The deepest folder told apart that a file lies in: a/b of a/b/c/file at depth 2."""
    parent = f"left({path}, length({path}) - length(substring_index({path}, '/', -1)) - 1)"
    return F.expr(f"substring_index({parent}, '/', {depth})")


def _prefixes(folder: str) -> Column:
    """A folder and all above it, the mount itself first: '' and 'a' and 'a/b' for a/b."""
    names = F.split(folder, "/")
    lengths = F.sequence(F.lit(0), F.when(F.col(folder) == "", 0).otherwise(F.size(names)))
    return F.transform(lengths, lambda n: F.array_join(F.slice(names, F.lit(1), n), "/"))
