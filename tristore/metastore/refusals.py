"""What the sync could not write, kept with the reason until it fits or is overtaken."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

import orjson
from psycopg.rows import class_row

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidEvent, Violation
from tristore.events.envelope import time_text
from tristore.events.log import Stored
from tristore.metastore.node_view import NodeChange

_sql = load("tristore.metastore", "refusals.sql")

Reason = Literal["rules", "failed", "unreadable"]


@dataclass(frozen=True, slots=True)
class Refusal:
    key: str
    reason: Reason
    view: dict[str, Any]
    errors: list[dict[str, str]]
    sequence: int
    ordinal: int
    event_id: str
    correlation_id: str | None

    @classmethod
    def of(cls, change: NodeChange, reason: Reason, violations: Iterable[Violation]) -> "Refusal":
        return cls(
            change.key,
            reason,
            change.view,
            [violation.as_json() for violation in violations],
            change.sequence,
            change.ordinal,
            change.event_id,
            change.correlation_id,
        )

    @classmethod
    def unreadable(cls, event: Stored, error: InvalidEvent) -> "Refusal":
        """Under the event's own id: which node it tells of is what cannot be read."""
        errors = [violation.as_json() for violation in error.violations]
        sequence = event.ingress_sequence
        return cls(event.id, "unreadable", {}, errors, sequence, 0, event.id, event.correlation_id)


@dataclass(frozen=True, slots=True)
class Kept:
    """A refusal as operators see it."""

    key: str
    reason: str
    view: dict[str, Any]
    errors: list[dict[str, str]]
    sequence: int
    event_id: str
    correlation_id: str | None
    at: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "reason": self.reason,
            "filestore": self.view,
            "errors": self.errors,
            "sequence": self.sequence,
            "eventId": self.event_id,
            "correlationId": self.correlation_id,
            "at": time_text(self.at),
        }


async def keep(
    conn: Connection, namespace: str, rules_version: int, refusals: Sequence[Refusal]
) -> None:
    """Of several for one node, the last version counts."""
    latest: dict[str, Refusal] = {}
    for refusal in refusals:
        known = latest.get(refusal.key)
        if known is None or _version(known) <= _version(refusal):
            latest[refusal.key] = refusal
    given = orjson.dumps([asdict(refusal) for refusal in latest.values()]).decode()
    await conn.execute(
        _sql.keep, {"namespace": namespace, "rules_version": rules_version, "refusals": given}
    )


async def clear(
    conn: Connection, namespace: str, changes: Sequence[NodeChange], now: Mapping[str, int]
) -> None:
    """Forgets what is settled: `now` has the version of each node that its record tells of."""
    given = {
        "namespace": namespace,
        "keys": [change.key for change in changes],
        "versions": [now.get(change.key, -1) for change in changes],
        "event_ids": [change.event_id for change in changes],
    }
    await conn.execute(_sql.clear, given)


async def due(conn: Connection, namespace: str, rules_version: int, limit: int) -> list[NodeChange]:
    cursor = conn.cursor(row_factory=class_row(NodeChange))
    given = {"namespace": namespace, "rules_version": rules_version, "limit": limit}
    return await (await cursor.execute(_sql.due, given)).fetchall()


async def ask_again(conn: Connection, namespace: str) -> int:
    """How many are tried again, by the next turn of the sync."""
    return (await conn.execute(_sql.ask_again, {"namespace": namespace})).rowcount


async def page(conn: Connection, namespace: str, after: str, limit: int) -> list[Kept]:
    cursor = conn.cursor(row_factory=class_row(Kept))
    given = {"namespace": namespace, "after": after, "limit": limit}
    return await (await cursor.execute(_sql.page, given)).fetchall()


async def exist(conn: Connection, namespace: str) -> bool:
    row = await (await conn.execute(_sql.exist, {"namespace": namespace})).fetchone()
    return row == (True,)


def _version(refusal: Refusal) -> int:
    return int(refusal.view.get("version", -1))
