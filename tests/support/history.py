"""Puts events straight into the log, for tests of what reads it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psycopg

from tristore.db.pool import make_pool
from tristore.events import log
from tristore.events.envelope import Event


def made(number: int, **fields: Any) -> Event:
    given = {
        "id": f"h-{number}",
        "type": "test.thing.made",
        "source": "history",
        "occurredAt": datetime.now(UTC).isoformat(),
        "payload": {"n": number},
        **fields,
    }
    return Event.parse(given)


async def store(database_url: str, events: Sequence[Event]) -> None:
    async with make_pool(database_url, name="test", max_size=1) as pool:
        async with pool.connection() as conn, conn.transaction():
            await log.append(conn, events, [event.body_hash() for event in events])


def fill(database_url: str, count: int, types: int = 3, sources: int = 2) -> None:
    """Many plain events at once, of a few types and sources, a millisecond apart."""
    with psycopg.connect(database_url) as conn:
        conn.execute("SELECT last FROM bus.ingress_head FOR UPDATE")
        conn.execute(
            """
            INSERT INTO bus.workflow_events (id, type, source, occurred_at, received_at,
                ingress_sequence, payload, body_hash)
            SELECT 'f-' || n, 'fill.kind' || n %% %(types)s || '.made', 'fill' || n %% %(sources)s,
                now() - (%(count)s - n) * interval '1 ms',
                now() - (%(count)s - n) * interval '1 ms',
                n, jsonb_build_object('n', n), '\\x00'
            FROM generate_series(
                (SELECT last + 1 FROM bus.ingress_head),
                (SELECT last + %(count)s FROM bus.ingress_head)
            ) AS n
            """,
            {"types": types, "sources": sources, "count": count},
        )
        conn.execute("UPDATE bus.ingress_head SET last = last + %s", [count])
