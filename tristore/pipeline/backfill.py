"""Adds to a table of the log what it lacks of a range, and nothing that it has."""

import uuid
from datetime import UTC, datetime, timedelta

from deltalake import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tristore.errors import InvalidRequest, OutcomeUnknown
from tristore.failpoints import failpoint
from tristore.pipeline import growth, history, reading, rewriting, writing
from tristore.pipeline.catalogue import GROWTH, table_of
from tristore.pipeline.contents import TableFile, contents
from tristore.pipeline.feeds import EVENTS
from tristore.pipeline.history import Range
from tristore.pipeline.periods import Period
from tristore.pipeline.tools import Tools
from tristore.pipeline.transforms import with_day
from tristore.timestore.dataset import Dataset
from tristore.timestore.snapshot import through_app

_TRIES = 5
# What tells a row from all others.
_KEYS = {EVENTS: ["ingress_sequence"], "filestore_activity": ["event_id", "ordinal"]}


def backfill(tools: Tools, dataset: Dataset, wanted: Range) -> int:
    """How many rows were added; of growth, how many its hours have now. Asked again, none are."""
    if dataset.kind != "log":
        raise InvalidRequest(
            f"{dataset.slug} is not fed by the log; ingest its rows again, with the same "
            "Idempotency-Key where they had one"
        )
    for _ in range(_TRIES):
        handle = table_of(tools.config, dataset).place.table()
        attempt = _replace_hours if dataset.slug == GROWTH else _add_missing
        added = attempt(tools, dataset, handle, wanted.until(_through(handle, dataset)))
        if added is not None:
            return added
    raise OutcomeUnknown(f"{dataset.slug} was rewritten again and again; try the backfill later")


def _add_missing(tools: Tools, dataset: Dataset, handle: DeltaTable, wanted: Range) -> int | None:
    """None: the table was rewritten meanwhile, and must be looked at again."""
    table = table_of(tools.config, dataset)
    told = history.events if dataset.slug == EVENTS else history.activity
    there = reading.read(tools.spark, table, handle.schema(), _files(handle, dataset, wanted))
    keys = _KEYS[dataset.slug]
    there = wanted.filter(there, "ingress_sequence" if dataset.slug == EVENTS else "sequence")
    lacking = with_day(told(tools, wanted)).join(there.select(*keys), keys, "left_anti")
    columns = [field.name for field in handle.schema().fields]
    written = writing.write(lacking.select(*columns), table, f"backfill-{uuid.uuid4().hex}")
    failpoint("backfill.after_write")
    if not (rows := sum(file.rows for file in written)):
        return 0
    after = rewriting.last(handle, table)
    change = rewriting.Change("backfill", added=written, same_rows=False, after=after)
    done = rewriting.commit(table, tools.locks, change)
    failpoint("backfill.after_delta_commit")
    return rows if done else None


def _replace_hours(tools: Tools, dataset: Dataset, handle: DeltaTable, wanted: Range) -> int | None:
    """Sums cannot be told apart by row: whole hours are counted anew and replaced in one commit."""
    history.refuse_gaps(tools, dataset.slug)
    hours = _hours(history.activity(tools, wanted))
    if hours is None:
        return 0
    start, end = hours
    table = table_of(tools.config, dataset)
    # Not only what was asked for: all that these hours held is taken out.
    all_of_them = Range(through=_through(handle, dataset), start=start, end=end)
    fresh = growth.growth(history.activity(tools, all_of_them), tools.config.growth_depth)
    found = contents(handle, table.partition)
    files = [file for month in found if Period.of(month).meets(start, end) for file in found[month]]
    rows = reading.read(tools.spark, table, handle.schema(), files)
    others = rows.where((F.col("hour") < F.lit(start)) | (F.col("hour") >= F.lit(end)))
    whole = growth.merged(others.unionByName(fresh)).coalesce(1)
    ordered = whole.sortWithinPartitions(table.partition, "hour")
    written = writing.write(ordered, table, rewriting.sorted_name())
    failpoint("backfill.after_write")
    after = rewriting.last(handle, table)
    change = rewriting.Change("backfill", files, written, same_rows=False, after=after)
    done = rewriting.commit(table, tools.locks, change)
    failpoint("backfill.after_delta_commit")
    return sum(file.rows for file in written) if done else None


def _through(handle: DeltaTable, dataset: Dataset) -> int:
    return handle.transaction_version(through_app(dataset.slug)) or 0


def _hours(rows: DataFrame) -> tuple[datetime, datetime] | None:
    """The whole hours in which the rows of a range lie."""
    hour = F.date_trunc("hour", "occurred_at")
    # As seconds: Python would read a timestamp in the machine's zone.
    found = rows.select(F.min(F.unix_timestamp(hour)), F.max(F.unix_timestamp(hour))).first()
    if found is None or found[0] is None:
        return None
    first, last = (datetime.fromtimestamp(value, UTC) for value in found)
    return first, last + timedelta(hours=1)


def _files(handle: DeltaTable, dataset: Dataset, wanted: Range) -> list[TableFile]:
    found = contents(handle, dataset.partition_column)
    return [
        file
        for partition, listed in found.items()
        if Period.of(partition).meets(wanted.start, wanted.end)
        for file in listed
    ]
