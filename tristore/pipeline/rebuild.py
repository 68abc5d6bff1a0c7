"""A table of the log made anew from the log and the archive, in place of what it holds."""

from tristore.errors import InvalidRequest, OutcomeUnknown
from tristore.failpoints import failpoint
from tristore.pipeline import growth, history, rewriting, writing
from tristore.pipeline.catalogue import GROWTH, table_of
from tristore.pipeline.contents import contents
from tristore.pipeline.feeds import EVENTS
from tristore.pipeline.history import Range
from tristore.pipeline.tools import Tools
from tristore.pipeline.transforms import with_day
from tristore.timestore.dataset import Dataset
from tristore.timestore.snapshot import through_app

_TRIES = 5


def rebuild(tools: Tools, dataset: Dataset) -> int:
    """How many rows it has now. Readers see the old table or the new one; what the stream brings
    meanwhile lies after the range and stays."""
    if dataset.kind != "log":
        raise InvalidRequest(f"{dataset.slug} is not fed by the log and cannot be rebuilt from it")
    if dataset.slug != EVENTS:  # which is what the log no longer has
        history.refuse_gaps(tools, dataset.slug)
    for _ in range(_TRIES):
        rows = _replace_all(tools, dataset)
        if rows is not None:
            return rows
    raise OutcomeUnknown(f"{dataset.slug} was rewritten again and again; try to rebuild it later")


def _replace_all(tools: Tools, dataset: Dataset) -> int | None:
    table = table_of(tools.config, dataset)
    handle = table.place.table()
    through = handle.transaction_version(through_app(dataset.slug)) or 0
    wanted = Range(through=through)
    files = [file for found in contents(handle, table.partition).values() for file in found]
    if dataset.slug == EVENTS:
        rows = with_day(history.events(tools, wanted))
    elif dataset.slug == GROWTH:
        rows = growth.growth(history.activity(tools, wanted), tools.config.growth_depth)
    else:
        rows = with_day(history.activity(tools, wanted))
    columns = [field.name for field in handle.schema().fields]
    written = writing.write(rows.select(*columns), table, f"rebuilt-{rewriting.sorted_name()}")
    failpoint("rebuild.after_write")
    after = rewriting.last(handle, table)
    change = rewriting.Change("rebuild", files, written, same_rows=False, after=after)
    done = rewriting.commit(table, tools.locks, change)
    failpoint("rebuild.after_delta_commit")
    return sum(file.rows for file in written) if done else None
