"""Filestore events told straight to the log, and the tables the pipeline would make of some."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
from deltalake import CommitProperties, Transaction, write_deltalake
from psycopg.rows import dict_row

from tristore.timestore.growth_tail import tail_sql
from tristore.timestore.snapshot import through_app

ACTIVITY = pa.schema(
    [
        ("sequence", pa.int64()),
        ("event_id", pa.string()),
        ("ordinal", pa.int32()),
        ("occurred_at", pa.timestamp("us", "UTC")),
        *((name, pa.string()) for name in ("type", "command", "mount", "path", "folder")),
        *((name, pa.string()) for name in ("node_id", "kind")),
        *((name, pa.int64()) for name in ("size_bytes", "size_delta")),
        *((name, pa.string()) for name in ("state", "outcome")),
        ("duration_ms", pa.int64()),
        ("principal", pa.string()),
        ("journal_id", pa.int64()),
        ("correlation_id", pa.string()),
        ("previous_path", pa.string()),
    ]
)
NODE = {"nodeId": "1", "kind": "file", "version": 1, "state": "active", "journalId": 1}


def tell(database_url: str, at: datetime, type: str, **payload: Any) -> int:
    """The sequence it got."""
    with psycopg.connect(database_url) as conn:
        found = conn.execute("UPDATE bus.ingress_head SET last = last + 1 RETURNING last")
        ((sequence,),) = found.fetchall()
        conn.execute(
            "INSERT INTO bus.workflow_events (id, type, source, occurred_at, ingress_sequence,"
            " payload, body_hash) VALUES (%s, %s, 'filestore.api', %s, %s, %s, '')",
            [f"a{sequence}", f"filestore.{type}", at, sequence, json.dumps({**NODE, **payload})],
        )
    return int(sequence)


def settle(root: Path, database_url: str, after: int, through: int, depth: int = 2) -> None:
    """Puts (after, through] of the log into the tables, each commit saying how far it goes."""
    with psycopg.connect(database_url, row_factory=dict_row) as conn:
        found = conn.execute(
            "SELECT * FROM bus.filestore_activity_v WHERE sequence > %s AND sequence <= %s",
            [after, through],
        ).fetchall()
    rows = pa.Table.from_pylist(found, ACTIVITY)
    with duckdb.connect() as conn:
        conn.execute("SET TimeZone = 'UTC'")
        conn.register("rows", rows)
        day = "SELECT *, strftime(occurred_at, '%Y-%m-%d') AS day FROM rows"
        _commit(root, "filestore_activity", conn.sql(day).to_arrow_table(), "day", through)
        sums = conn.sql(tail_sql("rows", depth)).to_arrow_table()
        _commit(root, "filestore_growth", sums, "month", through)


def _commit(root: Path, name: str, rows: pa.Table, partition: str, through: int) -> None:
    known = CommitProperties(app_transactions=[Transaction(through_app(name), through)])
    write_deltalake(
        root / name, rows, mode="append", partition_by=[partition], commit_properties=known
    )
