"""Many small files of a partition become few and sorted; rows of growth are merged."""

import logging
import math
from collections.abc import Sequence

from deltalake import Schema
from pyspark.sql import DataFrame

from tristore.errors import TristoreError
from tristore.failpoints import failpoint
from tristore.pipeline import growth, reading, rewriting, writing
from tristore.pipeline.catalogue import GROWTH, table_of
from tristore.pipeline.contents import TableFile, contents, settled
from tristore.pipeline.datafiles import DataFile
from tristore.pipeline.tools import Tools
from tristore.timestore.dataset import Dataset

# Files up to this size are merged whatever lies beside them.
_SMALL = 2**20
_log = logging.getLogger(__name__)


def compact(tools: Tools, dataset: Dataset, *, wholly: bool = False) -> int:
    """Merges where there are too many files, or wherever there is more than one; says how many
    partitions were."""
    handle = table_of(tools.config, dataset).place.table()
    done = 0
    for files in contents(handle, dataset.partition_column).values():
        chosen = files if wholly else crowd(files, tools.config.upkeep.target_bytes)
        most = 1 if wholly else tools.config.upkeep.compact_files
        if len(chosen) > most and not settled(files):
            done += rewrite(tools, dataset, handle.schema(), chosen, "compaction")
    return done


def crowd(files: Sequence[TableFile], target_bytes: int) -> list[TableFile]:
    """The small files, and larger ones only while those before them weigh as much: a file is
    then rewritten a few times on its way to full size, and not with every round."""
    chosen: list[TableFile] = []
    weight = 0
    for file in sorted(files, key=lambda file: file.size):
        if file.size >= target_bytes or file.size > max(_SMALL, weight):
            break
        chosen.append(file)
        weight += file.size
    return chosen


def rewrite(
    tools: Tools, dataset: Dataset, schema: Schema, files: Sequence[TableFile], action: str
) -> bool:
    """Files of one partition, in one commit; False if another rewrite was first."""
    table = table_of(tools.config, dataset)
    failpoint(f"{action}.before_write")
    rows = reading.read(tools.spark, table, schema, files)
    if dataset.slug == GROWTH:
        rows = growth.merged(rows)
    size = sum(file.size for file in files)
    ordered = in_order(rows, dataset, math.ceil(size / tools.config.upkeep.target_bytes))
    written = writing.write(ordered, table, rewriting.sorted_name())
    _refuse_other_rows(dataset, files, written)
    failpoint(f"{action}.after_write")
    change = rewriting.Change(action, files, written)
    done = rewriting.commit(table, tools.locks, change)
    failpoint(f"{action}.after_delta_commit")
    _log.info("%s of %s: %d files became %d", action, dataset.slug, len(files), len(written))
    return done


def in_order(rows: DataFrame, dataset: Dataset, files: int) -> DataFrame:
    spread = rows.coalesce(1)
    if files > 1:
        spread = rows.repartitionByRange(files, dataset.time_column)
    # The partition column first: a writer that finds another order sorts again, by it alone.
    return spread.sortWithinPartitions(dataset.partition_column, *_order(dataset))


def _order(dataset: Dataset) -> list[str]:
    """Growth is asked for one folder at a time, everything else for a span of time."""
    folder = ["depth", "mount", "prefix"] if dataset.slug == GROWTH else []
    return [*folder, dataset.time_column]


def _refuse_other_rows(
    dataset: Dataset, files: Sequence[TableFile], written: Sequence[DataFile]
) -> None:
    before, after = sum(file.rows for file in files), sum(file.rows for file in written)
    merged = dataset.slug == GROWTH and 0 < after <= before
    if after != before and not merged:
        raise TristoreError(
            f"a rewrite of {dataset.slug} has {after} rows in place of {before}; "
            "nothing was committed, the next round tries again"
        )
