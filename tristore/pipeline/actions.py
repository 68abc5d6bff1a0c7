"""What can be asked of the upkeep, by name: each may be repeated without harm."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from tristore.errors import InvalidRequest, Unavailable
from tristore.pipeline import catalogue, closing
from tristore.pipeline.backfill import backfill
from tristore.pipeline.compaction import compact
from tristore.pipeline.history import Range
from tristore.pipeline.rebuild import rebuild
from tristore.pipeline.tools import Tools
from tristore.pipeline.vacuum import vacuum, vacuum_deleted
from tristore.timestore import root
from tristore.timestore.dataset import Dataset

Progress = Callable[[int, int], None]
Given = dict[str, Any]


def act(tools: Tools, action: str, given: Given, progress: Progress) -> Any:
    """Does it for the dataset that was named, else for every one; the answer is by dataset."""
    root.check(tools.config.database_url, tools.config.tables)
    chosen = _datasets(tools, given.get("dataset"))
    if action == "backfill":
        chosen = [dataset for dataset in chosen if dataset.kind == "log" or given.get("dataset")]
    answer: dict[str, Any] = {}
    for number, dataset in enumerate(chosen, 1):
        answer[dataset.slug] = _ACTIONS[action](tools, dataset, given)
        progress(number, len(chosen))
    if action == "vacuum" and not given.get("dataset"):
        answer["deleted datasets"] = vacuum_deleted(tools, given.get("keepHours"))
    return answer


def _datasets(tools: Tools, slug: str | None) -> list[Dataset]:
    found = catalogue.datasets(tools.config)
    if slug is not None:
        found = [catalogue.find(tools.config, slug)]
    there = [one for one in found if catalogue.table_of(tools.config, one).exists()]
    if slug is not None and not there:
        raise InvalidRequest(f"{slug} has no table yet; it begins with its first rows")
    return there


def _close(tools: Tools, dataset: Dataset, given: Given) -> list[str]:
    mark = catalogue.mark(tools.config)
    handle = catalogue.table_of(tools.config, dataset).place.table()
    if not catalogue.holds(tools.config, dataset, handle, mark):
        if given.get("dataset") is None:
            return []
        raise Unavailable(f"the table of {dataset.slug} is not up to date yet; try again")
    only = given.get("partition")
    if only is not None and only not in closing.partitions(handle, dataset):
        raise InvalidRequest(f"{dataset.slug} has no partition {only}; GET its partitions")
    return closing.close_due(tools, dataset, mark.at, None if only is None else [only])


def _backfill(tools: Tools, dataset: Dataset, given: Given) -> int:
    if given.get("rebuild"):
        return rebuild(tools, dataset)
    wanted = Range(
        after=int(given.get("fromSequence") or 1) - 1,
        through=given.get("toSequence"),
        start=_time(given.get("from")),
        end=_time(given.get("to")),
    )
    return backfill(tools, dataset, wanted)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


_ACTIONS: dict[str, Callable[[Tools, Dataset, Given], Any]] = {
    "close": _close,
    "compact": lambda tools, dataset, given: compact(tools, dataset, wholly=True),
    "vacuum": lambda tools, dataset, given: vacuum(tools, dataset, given.get("keepHours")),
    "backfill": _backfill,
}
