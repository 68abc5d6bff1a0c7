"""The same number, asked of every place that must agree."""

from typing import Any

import httpx
import psycopg
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from demo.platform import Platform


def postgres(status: dict[str, Any]) -> tuple[int, int]:
    """Stored events and dead letters."""
    with psycopg.connect(status["databaseUrl"]) as conn:
        row = conn.execute(
            "SELECT (SELECT count(*) FROM bus.workflow_events),"
            " (SELECT count(*) FROM bus.dead_letters)"
        ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def dead_letters(status: dict[str, Any]) -> list[tuple[Any, ...]]:
    with psycopg.connect(status["databaseUrl"]) as conn:
        return conn.execute(
            "SELECT event_id, reason, errors->0->>'path', errors->0->>'message'"
            " FROM bus.dead_letters ORDER BY id"
        ).fetchall()


def delta(platform: Platform) -> int:
    try:
        table = DeltaTable(str(platform.folder / "tables" / "events"))
    except TableNotFoundError:
        return 0
    return int(table.to_pyarrow_table(columns=["id"]).num_rows)


def duckdb(status: dict[str, Any], sql: str) -> list[list[Any]]:
    headers = {"Authorization": f"Bearer {status['token']}"}
    answer = httpx.post(
        f"{status['url']}/timestore/v1/sql", json={"sql": sql}, headers=headers, timeout=30
    )
    answer.raise_for_status()
    return list(answer.json()["rows"])
