"""Asks DuckDB and deltalake, with nothing of ours between, what lies in the tables."""

from typing import Any

import duckdb

from tristore.timestore.place import Place

NAMES = ("events", "filestore_activity", "filestore_growth")


def ask(tables: Place, sql: str) -> list[list[Any]]:
    with duckdb.connect() as conn:
        conn.execute("SET TimeZone = 'UTC'")
        for name in NAMES:
            if (place := tables.child(name)).exists():
                conn.register(name, place.table().to_pyarrow_dataset())
        return [list(row) for row in conn.execute(sql).fetchall()]


def through(tables: Place, name: str) -> int | None:
    return tables.child(name).table().transaction_version(f"{name}:through")
