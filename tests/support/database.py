"""Asks the database what a test wants to know."""

from typing import Any

import psycopg
from psycopg.rows import dict_row


def rows(database_url: str, query: str, *params: Any) -> list[dict[str, Any]]:
    with psycopg.connect(database_url, row_factory=dict_row) as conn:
        return conn.execute(query, params).fetchall()


def value(database_url: str, query: str, *params: Any) -> Any:
    with psycopg.connect(database_url) as conn:
        found = conn.execute(query, params).fetchone()
    return found[0] if found else None


def log_count(database_url: str) -> int:
    return int(value(database_url, "SELECT count(*) FROM bus.workflow_events"))


def dead_letters(database_url: str) -> list[dict[str, Any]]:
    return rows(database_url, "SELECT * FROM bus.dead_letters ORDER BY id")
