"""Dead letters that cannot be written for a while."""

import asyncio

import psycopg

from faults.stage import BUS, Outcome, Stage
from tests.support.waiting import wait_until
from tristore.db.pool import make_pool
from tristore.events import outbox
from tristore.events.envelope import Event

_STATE = "SELECT state, attempt FROM bus.outbox WHERE event_id = %s"


def locked(stage: Stage) -> Outcome:
    """F38. With the table of dead letters locked, a bad event stays in flight, over several
    leases; then it lands, once, and so do the good ones around it."""
    ledger = stage.commit(stage.events // 3)
    with stage.part("work", BUS):
        with psycopg.connect(stage.url) as conn:
            conn.execute("LOCK TABLE bus.dead_letters")
            bad = asyncio.run(_offer_bad(stage.url))
            ledger |= stage.commit(stage.events // 3)
            wait_until(lambda: stage.rows(_STATE, bad)[0]["attempt"] > 2)
            assert stage.rows(_STATE, bad)[0]["state"] != "done"
        ledger |= stage.commit(stage.events // 3)
        stage.settle()
    stage.check(ledger, letters=1)
    (letter,) = stage.rows("SELECT event_id, reason FROM bus.dead_letters")
    assert letter == {"event_id": bad, "reason": "schema_invalid"}
    return Outcome(len(ledger) + 1, 1)


async def _offer_bad(database_url: str) -> str:
    bad = Event.make("metastore.record.deleted", {"namespace": 1}, source="faults")
    async with make_pool(database_url, name="test", max_size=1) as pool:
        async with pool.connection() as conn, conn.transaction():
            await outbox.add_event(conn, bad)
    return bad.id
