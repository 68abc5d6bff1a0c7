"""Which records of a namespace do not fit its rules: looked for in chunks, within bounds."""

import time
from dataclasses import dataclass, field
from typing import Any

from tristore.db.pool import Pool
from tristore.metastore import namespaces
from tristore.metastore.model import Proposal, Record
from tristore.metastore.rules import Rules
from tristore.metastore.writing import record_of

_CHUNK = 500
_LISTED = 100
_ERRORS = 5
# A person waits for the answer; the rest is found when it is written to, or by asking again.
_SECONDS = 10.0
_MOST = 200_000


@dataclass(slots=True)
class Misfits:
    """`truncated`: not all are listed, or not all records were looked at."""

    count: int = 0
    scanned: int = 0
    items: list[dict[str, Any]] = field(default_factory=list)
    whole: bool = True

    def add(self, record: Record, rules: Rules) -> None:
        self.scanned += 1
        found = rules.violations(_as_proposal(record))
        if not found:
            return
        self.count += 1
        if len(self.items) < _LISTED:
            errors = [violation.as_json() for violation in found[:_ERRORS]]
            self.items.append({"key": record.key, "errors": errors})

    def to_json(self) -> dict[str, Any]:
        truncated = not self.whole or self.count > len(self.items)
        return {
            "count": self.count,
            "items": self.items,
            "truncated": truncated,
            "scanned": self.scanned,
        }


async def misfits(pool: Pool, name: str, rules: Rules) -> Misfits:
    found, after, deadline = Misfits(), "", time.monotonic() + _SECONDS
    while True:
        # A connection per chunk: writers need them too.
        async with pool.connection() as conn:
            rows = await namespaces.scan(conn, name, after, _CHUNK)
        for record in map(record_of, rows):
            found.add(record, rules)
        if len(rows) < _CHUNK:
            return found
        after = rows[-1][1]
        if found.scanned >= _MOST or time.monotonic() > deadline:
            found.whole = False
            return found


def _as_proposal(record: Record) -> Proposal:
    content = (record.metadata, record.tags, record.owner)
    return Proposal(record.namespace, record.key, *content, False, "update", "", None)
