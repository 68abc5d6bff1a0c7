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
    parts = files.select(
        F.date_trunc("hour", "occurred_at").alias("hour"),
        "mount",
        F.explode(_shares(depth)).alias("share"),
        *(F.expr(condition).cast("long").alias(name) for name, condition in _COUNTS.items()),
    )
    shared = parts.select(
        "hour",
        "mount",
        "share.*",
        F.expr("share.bytes_in - share.bytes_out").alias("net_bytes"),
        *_COUNTS,
    )
    shared = shared.withColumn(
        "depth", F.when(F.col("prefix") == "", 0).otherwise(F.size(F.split("prefix", "/")))
    )
    return merged(shared.withColumn("month", F.date_format("hour", "yyyy-MM")))


def merged(partial: DataFrame) -> DataFrame:
    """One row a key; sums of sums are sums, so partial rows may be merged at any time."""
    sums = (F.sum(name).alias(name) for name in SUMS)
    return partial.groupBy(*KEYS).agg(*sums).select(*KEYS[:4], *SUMS, "month")


def _shares(depth: int) -> Column:
    """What each folder on the way to a file got and gave.

    A file that moved inside its mount left the folders it is no longer under: only to them, and to
    those it came under, did bytes go.
    """
    new, old = _prefixes("path", depth), _prefixes("previous_path", depth)
    came = F.transform(F.array_except(new, old), lambda p: _share(p, F.col("size_bytes"), _none()))
    left = F.transform(F.array_except(old, new), lambda p: _share(p, _none(), F.col("size_bytes")))
    stayed = F.transform(F.array_intersect(new, old), lambda p: _share(p, _none(), _none()))
    delta = F.col("size_delta")
    plain = F.transform(
        new, lambda p: _share(p, F.greatest(delta, _none()), F.greatest(-delta, _none()))
    )
    return F.when(F.col("previous_path").isNull(), plain).otherwise(F.concat(came, left, stayed))


def _share(prefix: Column, bytes_in: Column, bytes_out: Column) -> Column:
    return F.struct(
        prefix.alias("prefix"), bytes_in.alias("bytes_in"), bytes_out.alias("bytes_out")
    )


def _none() -> Column:
    return F.lit(0).cast("long")


def _prefixes(path: str, depth: int) -> Column:
    """The folders above a file, the mount itself first: '' and 'a' and 'a/b' for a/b/c/file."""
    folders = F.expr(f"slice(split({path}, '/'), 1, size(split({path}, '/')) - 1)")
    lengths = F.sequence(F.lit(0), F.least(F.size(folders), F.lit(depth)))
    return F.transform(lengths, lambda n: F.array_join(F.slice(folders, F.lit(1), n), "/"))
