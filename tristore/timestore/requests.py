"""What a query worker is asked, and what it answers."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Limits:
    seconds: float = 10
    rows: int = 10_000
    answer_bytes: int = 8 * 2**20
    memory_mb: int = 512


@dataclass(frozen=True, slots=True)
class Source:
    """One table with the tail that is not in it yet, offered as a view called `name`.

    The view holds the rows with `after <= time_column < before` and no others; only files that
    may hold such rows are opened. One table may be offered twice, under two names.
    """

    name: str
    folder: str
    kind: Literal["log", "ingest"]
    time_column: str
    after: datetime | None = None
    before: datetime | None = None
    # Delta's names of the columns' types, for a table that has no files yet.
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT over the sources; values are bound to its `?`.

    `foreign` SQL was written by a user: it is looked through before it runs, and of the sources
    only those it names are opened.
    """

    sources: list[Source]
    sql: str
    parameters: list[Any] = field(default_factory=list)
    format: str = "json"
    limits: Limits = field(default_factory=Limits)
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """`body` is ready to be sent; `meta` is what a JSON body tells beside its rows:
    `tableVersion`, `throughSequence`, `freshnessMs`, `tailTruncated`, `truncated`."""

    body: bytes
    media_type: str
    meta: dict[str, Any]
