"""The datasets' column of the ledger: which stored events are in the table of each log dataset."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load

_sql = load("tristore.events.admin", "dataset_column.sql")
# Stored events = in the table + waiting + missing.
COUNTS = {"events": "events", "inTable": "in_table", "waiting": "waiting", "missing": "missing"}


@dataclass(frozen=True, slots=True)
class Share:
    """What a dataset has of the events of a source in a minute."""

    dataset: str
    minute: datetime
    source: str
    events: int
    in_table: int
    waiting: int
    missing: int
    missing_ids: list[str]


@dataclass(frozen=True, slots=True)
class Column:
    """Without a dataset that a pipeline has ever fed there is nothing to hold the log to."""

    datasets: list[str]
    shares: list[Share]

    @property
    def missing(self) -> int:
        return self._most("missing")

    @property
    def waiting(self) -> int:
        return self._most("waiting")

    @property
    def missing_ids(self) -> Iterable[str]:
        return dict.fromkeys(each for share in self.shares for each in share.missing_ids)

    def of(self, minute: datetime, source: str) -> "Column":
        own = [share for share in self.shares if (share.minute, share.source) == (minute, source)]
        return Column(self.datasets, own)

    def to_json(self) -> dict[str, Any]:
        if not self.datasets:
            return {"state": "off"}
        return {"state": "on", **{name: self._counts(name) for name in self.datasets}}

    def _counts(self, dataset: str) -> dict[str, int]:
        own = [share for share in self.shares if share.dataset == dataset]
        return {shown: sum(getattr(s, name) for s in own) for shown, name in COUNTS.items()}

    def _most(self, name: str) -> int:
        """An event that is in none of them is one event."""
        return max((self._counts(dataset)[name] for dataset in self.datasets), default=0)


async def read(
    conn: Connection, begin: datetime, end: datetime, wanted: Sequence[str], named: int
) -> Column:
    given = {"since": begin, "until": end, "datasets": list(wanted), "named": named}
    fed = await (await conn.execute(_sql.fed, given)).fetchall()
    datasets = [name for name in wanted if (name,) in fed]
    if not datasets:
        return Column([], [])
    rows = conn.cursor(row_factory=class_row(Share))
    await rows.execute(_sql.shares, {**given, "datasets": datasets}, prepare=False)
    return Column(datasets, await rows.fetchall())
