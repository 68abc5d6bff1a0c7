"""The partitions of a dataset, as the pipeline last saw them in its table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from tristore.db.pool import Pool
from tristore.db.queries import load
from tristore.timestore.times import as_text

_sql = load("tristore.timestore", "partitions.sql")

STATES = ("open", "closed", "removed")


@dataclass(frozen=True, slots=True)
class Partition:
    """`revision`: how often it was closed; rows that came late open it again."""

    partition: str
    state: str
    revision: int
    from_time: datetime
    to_time: datetime
    rows: int
    bytes: int
    files: int
    table_version: int | None
    closed_at: datetime | None
    updated_at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "partition": self.partition,
            "state": self.state,
            "revision": self.revision,
            "from": as_text(self.from_time),
            "to": as_text(self.to_time),
            "rows": self.rows,
            "bytes": self.bytes,
            "files": self.files,
            "tableVersion": self.table_version,
            "closedAt": as_text(self.closed_at),
            "updatedAt": as_text(self.updated_at),
        }


async def page(
    pool: Pool, dataset: str, *, before: str | None, states: Sequence[str], limit: int
) -> list[Partition]:
    given = {"dataset": dataset, "before": before, "states": list(states), "limit": limit}
    async with pool.connection() as conn:
        cursor = conn.cursor(row_factory=class_row(Partition))
        return await (await cursor.execute(_sql.page, given)).fetchall()
