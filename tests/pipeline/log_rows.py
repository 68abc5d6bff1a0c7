"""Rows for the event log, numbered under the head row as every writer must."""

import psycopg

from tristore.db.queries import load

_sql = load("tests.pipeline", "log_rows.sql")


def append(database_url: str, count: int) -> None:
    with psycopg.connect(database_url) as conn:
        row = conn.execute(_sql.lock_head).fetchone()
        assert row is not None
        conn.execute(_sql.append, {"last": row[0], "count": count})
        conn.execute(_sql.move_head, {"count": count})


def execute(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(statement)


def fetch(database_url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url) as conn:
        return conn.execute(statement).fetchall()
