"""Closes the partitions whose time has passed: sorted, compacted, told of once a revision."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from deltalake import DeltaTable

from tristore.failpoints import failpoint
from tristore.pipeline import compaction, ledger
from tristore.pipeline.catalogue import table_of
from tristore.pipeline.contents import TableFile, contents, settled
from tristore.pipeline.ledger import Entry
from tristore.pipeline.periods import Period
from tristore.pipeline.tools import Tools
from tristore.timestore.dataset import Dataset

ACTION = "closing"


def observe(tools: Tools, dataset: Dataset, handle: DeltaTable) -> None:
    found = contents(handle, dataset.partition_column)
    ledger.observe(tools.config.database_url, dataset, handle.version(), found)


def close_due(
    tools: Tools, dataset: Dataset, as_of: datetime, only: Sequence[str] | None = None
) -> list[str]:
    """Closes what had ended, lateness included, at an instant up to which all is in the table."""
    handle = table_of(tools.config, dataset).place.table()
    observe(tools, dataset, handle)
    found = contents(handle, dataset.partition_column)
    known = ledger.entries(tools.config.database_url, dataset)
    due = [
        known[name]
        for name in found
        # None is known of a dataset that was deleted meanwhile.
        if name in known
        and known[name].state == "open"
        and (name in only if only is not None else _ended(dataset, name, as_of))
    ]
    return [entry.partition for entry in due if _close(tools, dataset, entry)]


def _ended(dataset: Dataset, partition: str, as_of: datetime) -> bool:
    return Period.of(partition).end <= as_of - timedelta(seconds=dataset.lateness_seconds)


def _close(tools: Tools, dataset: Dataset, entry: Entry) -> bool:
    """After a kill past the commit the partition is found settled, and only the telling is left."""
    # The newest version each time: an older one would be told over what was just closed in it.
    handle = table_of(tools.config, dataset).place.table()
    files = _files(handle, dataset, entry.partition)
    if not files:
        return False
    if not settled(files):
        compaction.rewrite(tools, dataset, handle.schema(), files, ACTION)
        handle = table_of(tools.config, dataset).place.table()
        files = _files(handle, dataset, entry.partition)
    if not settled(files):
        return False  # late rows came meanwhile; the next round takes them in
    observe(tools, dataset, handle)
    done = ledger.close(tools.config.database_url, dataset, entry, files, handle.version())
    failpoint(f"{ACTION}.after_postgres")
    return done


def _files(handle: DeltaTable, dataset: Dataset, partition: str) -> list[TableFile]:
    return contents(handle, dataset.partition_column).get(partition, [])


def partitions(handle: DeltaTable, dataset: Dataset) -> list[str]:
    return list(contents(handle, dataset.partition_column))


def next_end(tools: Tools, dataset: Dataset) -> datetime | None:
    """When the first of the open partitions ends."""
    known = ledger.entries(tools.config.database_url, dataset).values()
    ends = (Period.of(one.partition).end for one in known if one.state == "open")
    return min(ends, default=None)
