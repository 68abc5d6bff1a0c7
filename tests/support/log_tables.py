"""The log's tables as the pipeline leaves them, made without Spark: a part of the log each."""

from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, Transaction, write_deltalake
from psycopg.types.json import Jsonb

from tristore.pipeline import log
from tristore.timestore.place import Place

READERS = {"events": log.read, "filestore_activity": log.read_activity}
SIZES = (3, 5, 7, 11)


def publish(database_url: str, count: int) -> None:
    """Filestore events, one in seven an import of four nodes, numbered as the log numbers."""
    with psycopg.connect(database_url) as conn:
        ((last,),) = conn.execute("SELECT last FROM bus.ingress_head FOR UPDATE").fetchall()
        rows = [_event(number) for number in range(last + 1, last + count + 1)]
        conn.cursor().executemany(
            "INSERT INTO bus.workflow_events (id, type, source, occurred_at, ingress_sequence,"
            " payload, schema_version, body_hash) VALUES (%s, %s, 'filestore.api',"
            " timestamptz '2026-03-01T10:00Z' + %s * interval '7 minutes', %s, %s, 1, '')",
            rows,
        )
        conn.execute("UPDATE bus.ingress_head SET last = last + %s", [count])


def _event(number: int) -> tuple[str, str, int, int, Jsonb]:
    node = {"nodeId": str(number), "kind": "file", "version": 1}
    if number % 7 == 0:
        nodes = [{**node, "path": f"in/{number}/{n}", "sizeBytes": n} for n in SIZES]
        payload = {"mount": "m", "journalId": number, "sizeDelta": sum(SIZES), "nodes": nodes}
        return f"e{number}", "filestore.nodes.imported", number, number, Jsonb(payload)
    payload = {**node, "mount": "m", "path": f"a/{number}", "sizeBytes": 10, "sizeDelta": 10}
    payload |= {"state": "active", "journalId": number, "command": "put"}
    return f"e{number}", "filestore.node.created", number, number, Jsonb(payload)


def commit(root: Path | Place, database_url: str, table: str, through: int) -> None:
    """Appends what the table lacks up to `through`, in one Delta commit that says so."""
    place = _place(root).child(table)
    after = reached(root, table)
    batches = list(READERS[table](database_url, after, through))
    rows = pa.Table.from_batches(batches)
    rows = rows.append_column("day", pc.strftime(rows["occurred_at"], format="%Y-%m-%d"))
    told = CommitProperties(app_transactions=[Transaction(f"{table}:through", through)])
    write_deltalake(
        place.local or place.uri,
        rows,
        partition_by=["day"],
        mode="append",
        commit_properties=told,
        storage_options=dict(place.options) or None,
    )


def reached(root: Path | Place, table: str) -> int:
    place = _place(root).child(table)
    return place.table().transaction_version(f"{table}:through") or 0 if place.exists() else 0


def _place(root: Path | Place) -> Place:
    return root if isinstance(root, Place) else Place(str(root))
