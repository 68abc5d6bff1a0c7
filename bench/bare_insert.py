"""The limit for everything that ends in the log: the same rows, batched INSERT, one connection."""

import time

import psycopg

from tristore.events.envelope import Event

BATCH = 500
COLUMNS = "ingress_sequence, id, type, source, occurred_at, payload, body_hash"
INSERT = f"INSERT INTO bus.workflow_events ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s)"


def events(count: int) -> list[Event]:
    """About 300 bytes each on the wire."""
    return [
        Event.make("bench.thing.made", {"n": number, "text": "x" * 130}, source="bench.publisher")
        for number in range(count)
    ]


def bare_insert(database_url: str, count: int) -> float:
    """Rows per second into the log's own table, then the table is emptied again."""
    made = events(count)
    rows = [
        (n, e.id, e.type, e.source, e.occurred_at, psycopg.types.json.Jsonb(e.payload), b"x" * 32)
        for n, e in enumerate(made, 1)
    ]
    with psycopg.connect(database_url) as conn:
        started = time.perf_counter()
        for start in range(0, count, BATCH):
            with conn.cursor() as cursor:
                cursor.executemany(INSERT, rows[start : start + BATCH])
            conn.commit()
        seconds = time.perf_counter() - started
        conn.execute("TRUNCATE bus.workflow_events")
    return count / seconds
