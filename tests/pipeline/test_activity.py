"""Filestore events become rows of activity and growth, each once, whatever happened before."""

import json
from dataclasses import replace
from typing import Any

import psycopg
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tristore.pipeline import jobs
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.query import run_sql

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


async def test_the_sum_of_deltas_is_what_lies_on_each_mount(
    spark: SparkSession, config: PipelineConfig
) -> None:
    story(config.database_url)
    jobs.run_available(config, spark)

    found = await run_sql(
        config.tables_root,
        "SELECT sequence, ordinal, mount, path, folder, size_delta, command, duration_ms, outcome"
        " FROM filestore_activity ORDER BY sequence, ordinal",
    )
    assert found["rows"] == [
        [1, 0, "m", "in/f", "in", 10, "put", None, None],
        [2, 0, "m", "old/2", "old", 2, "import", None, None],
        [2, 1, "m", "old/3", "old", 3, "import", None, None],
        [3, 0, "n", "f", "f", 10, "move", None, None],
        [3, 1, "m", "in/f", "in", -10, "move", None, None],
        [4, 0, "m", "in/f", "in", None, "move", 7, "completed"],
    ]
    assert found["throughSequence"] == 4
    total = "SELECT mount, prefix, sum(net_bytes), sum(moved) FROM filestore_growth GROUP BY ALL"
    growth = await run_sql(config.tables_root, f"{total} ORDER BY ALL")
    assert [[row[0], row[1], int(row[2]), int(row[3])] for row in growth["rows"]] == [
        ["m", "", 5, 1],
        ["m", "in", 0, 1],
        ["m", "old", 5, 0],
        ["n", "", 10, 1],
    ]


async def test_tables_that_were_not_fed_catch_up_when_they_are(
    spark: SparkSession, config: PipelineConfig
) -> None:
    off = replace(config, filestore_sync=False)
    log_rows.append(config.database_url, 20)
    jobs.run_available(off, spark)
    story(config.database_url)
    jobs.run_available(off, spark)
    assert not DeltaTable.is_deltatable(f"{config.tables_root}/filestore_activity")

    jobs.run_available(config, spark)
    tell(config.database_url, ("node.deleted", {**NODE, "path": "f", "mount": "n"} | _gone()))
    jobs.run_available(config, spark)
    counts = "SELECT count(*), count(DISTINCT (event_id, ordinal)), sum(size_delta)"
    found = await run_sql(config.tables_root, f"{counts} FROM filestore_activity")
    assert [int(cell) for cell in found["rows"][0]] == [7, 7, 5]
    assert found["throughSequence"] == 25


def _gone() -> dict[str, Any]:
    return {"sizeBytes": 10, "sizeDelta": -10, "state": "deleted", "command": "delete"}
