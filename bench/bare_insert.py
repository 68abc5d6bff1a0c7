"""The limits for everything that ends in the log: the same rows into the same table, one Python
connection, no checks, no order, no duplicates found."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from tristore.events.envelope import Event

BATCH = 500
COLUMNS = "ingress_sequence, id, type, source, occurred_at, payload, body_hash"
ROW = "(%s, %s, %s, %s, %s, %s, %s)"
INSERT = f"INSERT INTO bus.workflow_events ({COLUMNS}) VALUES "

Row = tuple[Any, ...]
Method = Callable[[psycopg.Connection, Sequence[Row]], None]


def events(count: int) -> list[Event]:
    """About 300 bytes each on the wire."""
    return [
        Event.make("bench.thing.made", {"n": number, "text": "x" * 130}, source="bench.publisher")
        for number in range(count)
    ]


def bare_insert(database_url: str, count: int) -> float:
    """Rows per second by `executemany`: one INSERT a row, sent in pipelines, 500 a commit."""
    return _measure(database_url, count, _executemany)


def bare_values(database_url: str, count: int) -> float:
    """Rows per second by INSERTs of 500 rows each, a commit for each."""
    return _measure(database_url, count, _values)


def _measure(database_url: str, count: int, method: Method) -> float:
    """The table is empty before and after."""
    rows = [
        (n, e.id, e.type, e.source, e.occurred_at, Jsonb(e.payload), b"x" * 32)
        for n, e in enumerate(events(count), 1)
    ]
    with psycopg.connect(database_url) as conn:
        started = time.perf_counter()
        for start in range(0, count, BATCH):
            method(conn, rows[start : start + BATCH])
            conn.commit()
        seconds = time.perf_counter() - started
        conn.execute("TRUNCATE bus.workflow_events")
    return count / seconds


def _executemany(conn: psycopg.Connection, rows: Sequence[Row]) -> None:
    with conn.cursor() as cursor:
        cursor.executemany(INSERT + ROW, rows)


def _values(conn: psycopg.Connection, rows: Sequence[Row]) -> None:
    values = [value for row in rows for value in row]
    conn.execute(INSERT + ", ".join([ROW] * len(rows)), values)
