"""Which folders change most: their bytes in and out and how often something happened in them."""

from dataclasses import dataclass
from typing import Literal

from tristore.db.queries import load
from tristore.timestore import window
from tristore.timestore.growth import Folder
from tristore.timestore.growth_tail import tail_sql
from tristore.timestore.requests import Query
from tristore.timestore.tables import ACTIVITY, GROWTH, Tables

_sql = load("tristore.timestore", "storage.sql")
By = Literal["changes", "bytes"]
_ORDER: dict[By, str] = {
    "changes": 'changes DESC, "bytesIn" + "bytesOut"',
    "bytes": '"bytesIn" + "bytesOut" DESC, changes',
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Times in seconds since 1970; `levels` below the folder."""

    begin: float
    end: float
    levels: int
    by: By
    limit: int


def query(tables: Tables, folder: Folder, asked: Asked, format: str) -> Query:
    """From the hourly sums where they tell whole hours and go deep enough, else from activity."""
    depth = folder.depth + asked.levels
    whole = asked.begin % window.HOUR == asked.end % window.HOUR == 0
    table = GROWTH if whole and depth <= tables.growth_depth else ACTIVITY
    growth = GROWTH if table == GROWTH else f"({tail_sql(ACTIVITY, depth)})"
    sql = _sql.churn.format(growth=growth, mounts=folder.condition(4), order=_ORDER[asked.by])
    given = [folder.prefix, depth, asked.limit, *folder.bound()]
    return Query([tables.source(table, asked.begin, asked.end)], sql, given, format)
