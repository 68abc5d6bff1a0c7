"""Whole partitions go when they are too old, or when a dataset has grown too large."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from tristore.failpoints import failpoint
from tristore.pipeline import ledger, rewriting
from tristore.pipeline.catalogue import GROWTH, table_of
from tristore.pipeline.contents import TableFile, contents
from tristore.pipeline.periods import Period
from tristore.pipeline.tools import Tools
from tristore.timestore.dataset import Dataset
from tristore.timestore.retention import Retention

_EVER = timedelta(days=365 * 1000)


def retain(tools: Tools, dataset: Dataset, now: datetime) -> list[str]:
    """Removes what the dataset's retention lets go; says which partitions."""
    if dataset.slug == GROWTH or dataset.retention == Retention():
        return []  # growth is a sum of changes: without the oldest its totals would be false
    table = table_of(tools.config, dataset)
    handle = table.place.table()
    found = contents(handle, dataset.partition_column)
    names = overdue(dataset.retention, found, now)
    if not names:
        return []
    files = [file for name in names for file in found[name]]
    change = rewriting.Change("retention", removed=files, same_rows=False)
    done = rewriting.commit(table, tools.locks, change)
    failpoint("retention.after_delta_commit")
    handle = table.place.table()
    left = contents(handle, dataset.partition_column)
    ledger.observe(tools.config.database_url, dataset, handle.version(), left)
    return names if done else []


def overdue(
    retention: Retention, found: Mapping[str, Sequence[TableFile]], now: datetime
) -> list[str]:
    names = sorted(found)
    gone = _too_old(retention.age, names, now)
    left = [name for name in names if name not in gone]
    return gone + _too_large(retention.max_bytes, left, found)


def _too_old(limit: timedelta | None, names: Sequence[str], now: datetime) -> list[str]:
    if limit is None:
        return []
    # Longer than there have been years: nothing is that old.
    oldest = now - min(limit, _EVER)
    return [name for name in names if Period.of(name).end <= oldest]


def _too_large(
    limit: int | None, names: Sequence[str], found: Mapping[str, Sequence[TableFile]]
) -> list[str]:
    """Oldest first; the newest partition stays, however large it is."""
    if limit is None:
        return []
    sizes = {name: sum(file.size for file in found[name]) for name in names}
    total, gone = sum(sizes.values()), []
    for name in names[:-1]:
        if total <= limit:
            break
        gone.append(name)
        total -= sizes[name]
    return gone
