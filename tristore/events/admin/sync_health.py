"""How the filestore sync is: running or not, how far behind, what it refused, what it rebuilds."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events.envelope import time_text

_sql = load("tristore.events.admin", "sync_health.sql")


@dataclass(frozen=True, slots=True)
class SyncHealth:
    """`sequence` is None until a sync has run for the first time."""

    paused: bool
    changed_by: str | None
    changed_at: datetime
    sequence: int | None
    last_error: str | None
    updated_at: datetime | None
    last: int
    lag_seconds: float
    refused: int
    rebuild: dict[str, Any] | None

    @property
    def lag(self) -> int:
        return max(0, self.last - (self.sequence or 0))

    @property
    def state(self) -> str:
        if self.paused:
            return "paused"
        if self.sequence is None:
            return "never started"
        return "failing" if self.last_error else "on"

    def to_json(self, namespace: str) -> dict[str, Any]:
        return {
            "state": self.state,
            "namespace": namespace,
            "sequence": self.sequence,
            "lastSequence": self.last,
            "lag": self.lag,
            "lagSeconds": round(self.lag_seconds, 3),
            "lastError": self.last_error,
            "updatedAt": self.updated_at and time_text(self.updated_at),
            "refused": self.refused,
            "pausedBy": self.changed_by if self.paused else None,
            "pausedAt": time_text(self.changed_at) if self.paused else None,
            "rebuild": self.rebuild and _rebuild(self.rebuild),
        }


async def read(conn: Connection, namespace: str) -> SyncHealth:
    cursor = conn.cursor(row_factory=class_row(SyncHealth))
    found = await (await cursor.execute(_sql.look, {"namespace": namespace})).fetchone()
    assert found is not None
    return found


async def shown(conn: Connection, namespace: str | None) -> dict[str, Any]:
    """For an operator; no namespace means that the sync is switched off by its setting."""
    if namespace is None:
        return {"state": "off"}
    return (await read(conn, namespace)).to_json(namespace)


def _rebuild(row: dict[str, Any]) -> dict[str, Any]:
    """As Postgres wrote the row; its times are texts already."""
    ended = row["finished_at"] is not None
    return {
        "id": row["id"],
        "state": ("failed" if row["error"] else "done") if ended else "running",
        "namespace": row["namespace"],
        "requestedBy": row["requested_by"],
        "requestedAt": row["requested_at"],
        "finishedAt": row["finished_at"],
        "fromSequence": row["first_sequence"],
        "sequence": row["sequence"],
        "toSequence": row["target"],
        "events": row["events"],
        "changed": row["changed"],
        "unknown": row["unknown"],
        "error": row["error"],
    }
