"""A store in miniature, to be killed: commits events and writes down what it knows of each.

`python -m faults.publisher <book> <transactions>`. The book has a line before each transaction
and one after its commit was confirmed, each on disk before the program goes on.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import IO

from tests.support.publishing import Ledger, digest
from tristore import failpoints
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.events import outbox
from tristore.events.envelope import Event
from tristore.failpoints import failpoint

PER_TRANSACTION = 10


def read_book(book: Path) -> tuple[Ledger, Ledger]:
    """What was confirmed, and what was tried without an answer."""
    confirmed: Ledger = {}
    tried: Ledger = {}
    whole, _, _ = book.read_text("utf-8").rpartition("\n") if book.exists() else ("", "", "")
    for line in whole.splitlines():
        outcome, events = json.loads(line)
        (confirmed if outcome == "ok" else tried).update(events)
    return confirmed, {key: tried[key] for key in tried.keys() - confirmed.keys()}


async def publish(settings: Settings, book: IO[str], transactions: int) -> None:
    async with make_pool(str(settings.database_url), name="publisher", max_size=1) as pool:
        for number in range(transactions):
            events = [_event(number, place) for place in range(PER_TRANSACTION)]
            _note(book, "trying", events)
            async with pool.connection() as conn:
                async with conn.transaction():
                    for event in events:
                        await outbox.add_event(conn, event)
                    failpoint("publisher.before_commit")
                failpoint("publisher.after_commit")
            _note(book, "ok", events)


def _event(number: int, place: int) -> Event:
    return Event.make("test.thing.made", {"n": number, "place": place}, source="store")


def _note(book: IO[str], outcome: str, events: list[Event]) -> None:
    book.write(json.dumps([outcome, {e.id: digest(e.payload) for e in events}]) + "\n")
    book.flush()
    os.fsync(book.fileno())


if __name__ == "__main__":
    settings = Settings()
    failpoints.arm(settings.failpoints)
    with open(sys.argv[1], "a", encoding="utf-8") as book:
        asyncio.run(publish(settings, book, int(sys.argv[2])))
