"""The quick way to a new record: one round trip, on the word of rules this process knows."""

from datetime import UTC, datetime
from typing import Any

import orjson
import psycopg

from tristore.db.queries import load
from tristore.errors import Terminal
from tristore.events import outbox
from tristore.metastore.applying import API, Applying
from tristore.metastore.changes import Author, Create
from tristore.metastore.model import Proposal, Record
from tristore.metastore.settling import Settling, busy
from tristore.metastore.telling import changed_fields, told

_sql = load("tristore.metastore", "creating.sql")


class Creating:
    def __init__(self, settling: Settling, applying: Applying) -> None:
        self._settling = settling
        self._applying = applying

    async def quickly(self, change: Create, author: Author) -> Record | None:
        """The new record; or None where anything speaks against it, and nothing has happened:
        what it is, and whether it still holds, the long way finds out."""
        rules = self._applying.rulebook.known(change.namespace)
        if rules is None:
            return None
        try:
            proposal = change.propose(None, author, rules.reserves)
            proposal = self._applying.hooks.passed(None, proposal)
            rules.check(proposal)
            return await self._stored(proposal, rules.version)
        except (Terminal, psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation):
            return None
        except psycopg.errors.LockNotAvailable:
            raise busy() from None

    async def _stored(self, proposal: Proposal, rules: int) -> Record:
        made = proposal.applied(None, datetime.now(UTC), 1)
        changed = changed_fields(None, made)
        payload = told(None, made, proposal, changed)
        event = outbox.row(payload, source=API, correlation_id=proposal.correlation_id)
        row = {**_row(proposal, changed), **event, "rules": rules}
        async with self._settling.pool.connection() as conn:
            at: Any = await (await conn.execute(_sql.create, row)).fetchone()
        self._settling.poke()
        return made.at(at[0], at[0], None)


def _row(proposal: Proposal, changed: tuple[str, ...]) -> dict[str, Any]:
    return {
        "namespace": proposal.namespace,
        "key": proposal.key,
        "metadata": orjson.dumps(proposal.metadata).decode(),
        "tags": list(proposal.tags),
        "owner": proposal.owner,
        "changed": list(changed),
        "actor": proposal.actor,
        "correlation_id": proposal.correlation_id,
    }
