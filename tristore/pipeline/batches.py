"""Staged batches as the pipeline sees them: how many there are, which wait, what became of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tristore.db.queries import load
from tristore.errors import CheckpointMismatch
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.log import Position
from tristore.timestore.schemas import Column

_sql = load("tristore.pipeline", "batches.sql")
# Of one micro-batch: each file is a task's work to open.
_MOST_FILES = 1000


@dataclass(frozen=True, slots=True)
class Waiting:
    """A batch that waits for the table of its dataset."""

    id: int
    file: str
    rows: int
    slug: str
    folder: str
    status: str
    time_column: str
    granularity: str
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, row: dict[str, Any]) -> "Waiting":
        return cls(columns=tuple(map(Column.of, row.pop("schema"))), **row)

    @property
    def wanted(self) -> bool:
        """Not if its dataset was deleted, even if another has its name by now."""
        return self.status == "active" and self.file.split("/")[1] == self.folder


def head(database_url: str) -> Position:
    """The last batch there is."""
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.head).fetchone()
    if row is None:
        raise CheckpointMismatch("the staged batches have no head row; run `tristore migrate`")
    return Position(*row)


def refuse_foreign(head: Position, position: Position) -> None:
    """A position of another database would pass over batches without a sign."""
    if position.epoch != head.epoch or position.sequence > head.sequence:
        raise CheckpointMismatch(
            f"the checkpoint of staged ingests stands at batch {position.sequence} of "
            f"{position.epoch}, but this database ends at {head.sequence} of {head.epoch} "
            "(restored, or another one): point the pipeline at the right database, or move that "
            "checkpoint and the datasets' tables away"
        )


def start(database_url: str) -> int:
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.start).fetchone()
    assert row is not None
    return int(row[0])


def reach(database_url: str, after: int, through: int, rows: int) -> int:
    given = {"after": after, "through": through, "rows": rows, "files": _MOST_FILES}
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.reach, given).fetchone()
    return after if row is None or row[0] is None else int(row[0])


def waiting(database_url: str, span: Span) -> list[list[Waiting]]:
    """The batches of a range that wait, by dataset, each in their order."""
    given = {"after": span.after, "through": span.through}
    with psycopg.connect(database_url, row_factory=dict_row) as conn:
        found = [Waiting.of(row) for row in conn.execute(_sql.waiting, given).fetchall()]
    grouped = groupby(sorted(found, key=attrgetter("slug", "id")), attrgetter("slug"))
    return [list(group) for _, group in grouped]


def commit(database_url: str, ids: Sequence[int], version: int) -> None:
    """Told after the table has them, so that nobody misses rows that are called committed."""
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.commit, {"ids": list(ids), "version": version})


def fail(database_url: str, ids: Sequence[int], error: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(_sql.fail, {"ids": list(ids), "error": error})


def awaited(database_url: str, files: Sequence[str]) -> set[str]:
    with psycopg.connect(database_url) as conn:
        return {row[0] for row in conn.execute(_sql.awaited, {"files": list(files)}).fetchall()}
