"""All datasets at a glance: how far each table is behind, and how its partitions stand."""

from typing import Any

import psycopg

from tristore.db.queries import load
from tristore.timestore import progress
from tristore.timestore.place import Place

_sql = load("tristore.timestore", "overview.sql")


def read(database_url: str, tables: Place) -> list[dict[str, Any]]:
    """`lag`: events of the log, or staged batches, that are not in the table yet."""
    with psycopg.connect(database_url) as conn:
        rows = conn.execute(_sql.datasets).fetchall()
    return [_dataset(tables, row) for row in rows]


def _dataset(tables: Place, row: tuple[Any, ...]) -> dict[str, Any]:
    slug, folder, kind, last, opened, closed, staged = row
    found = {**progress.read(tables, folder), "dataset": slug}
    lag = staged if kind == "ingest" else last - found["throughSequence"]
    return {**found, "lag": lag, "open": opened, "closed": closed}
