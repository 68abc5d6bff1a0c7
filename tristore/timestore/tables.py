"""The log's tables that tell of storage, as sources of a query."""

from dataclasses import dataclass

from tristore.timestore.dataset import Dataset
from tristore.timestore.requests import Source
from tristore.timestore.window import moment

ACTIVITY, GROWTH = "filestore_activity", "filestore_growth"


@dataclass(frozen=True, slots=True)
class Tables:
    """`growth_depth`: how many levels of folders the hourly sums tell apart."""

    activity: Dataset
    growth: Dataset
    growth_depth: int

    def source(self, name: str, after: float | None = None, before: float | None = None) -> Source:
        """Bounds in seconds since 1970."""
        dataset = self.growth if name == GROWTH else self.activity
        return Source(
            name=name,
            folder=dataset.folder,
            kind=dataset.kind,
            time_column=dataset.time_column,
            after=None if after is None else moment(after),
            before=None if before is None else moment(before),
            columns={column.name: column.type for column in dataset.columns},
        )
