"""A short history of a filestore, as the events it tells the log."""

import json
from typing import Any

import psycopg

NODE = {"nodeId": "1", "mount": "m", "kind": "file", "version": 1, "state": "active"}
NODE |= {"journalId": 1, "command": "put", "principal": "ops"}


def tell(database_url: str, *events: tuple[str, dict[str, Any]]) -> None:
    with psycopg.connect(database_url) as conn:
        ((last,),) = conn.execute("SELECT last FROM bus.ingress_head FOR UPDATE").fetchall()
        for number, (kind, payload) in enumerate(events, int(last) + 1):
            conn.execute(
                "INSERT INTO bus.workflow_events (id, type, source, occurred_at, ingress_sequence,"
                " payload, correlation_id, schema_version, body_hash)"
                " VALUES (%s, %s, 'filestore.api', '2026-03-01T10:00Z', %s, %s, 'c', 1, '')",
                [f"e{number}", f"filestore.{kind}", number, json.dumps(payload)],
            )
        conn.execute("UPDATE bus.ingress_head SET last = last + %s", [len(events)])


def story(database_url: str) -> None:
    imported = [
        {"nodeId": str(n), "path": f"old/{n}", "kind": "file", "version": 1, "sizeBytes": n}
        for n in (2, 3)
    ]
    tell(
        database_url,
        ("node.created", {**NODE, "path": "in/f", "sizeBytes": 10, "sizeDelta": 10}),
        ("nodes.imported", {"mount": "m", "journalId": 2, "sizeDelta": 5, "nodes": imported}),
        (
            "node.moved",
            {**NODE, "mount": "n", "path": "f", "sizeBytes": 10, "sizeDelta": 10}
            | {"previousPath": "in/f", "previousMount": "m", "command": "move"},
        ),
        (
            "command.completed",
            {"journalId": 3, "command": "move", "mount": "m", "path": "in/f"}
            | {"status": "completed", "durationMs": 7, "bytes": 10, "nodesAffected": 1},
        ),
    )
