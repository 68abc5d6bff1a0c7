"""Changes on their way into the store: rules held, records locked, hooks asked, then written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from tristore.db.pool import Connection
from tristore.errors import Terminal
from tristore.metastore import writing
from tristore.metastore.changes import Author, Change
from tristore.metastore.hooks import Hooks
from tristore.metastore.model import Proposal, Record
from tristore.metastore.rules import Rulebook, Rules

# The source of events that requests cause.
API = "metastore.api"
Outcome = Literal["created", "updated", "deleted", "restored", "purged", "unchanged"]
_OUTCOMES: dict[str, Outcome] = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "restore": "restored",
    "purge": "purged",
}


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a change, and the record after it."""

    outcome: Outcome
    record: Record


@dataclass(frozen=True, slots=True)
class _Written:
    """A change that is stored, and its place among those that are."""

    outcome: Outcome
    place: int


@dataclass(frozen=True, slots=True)
class Applying:
    rulebook: Rulebook
    hooks: Hooks

    async def one(self, conn: Connection, author: Author, change: Change, source: str) -> Settled:
        """Raises what is wrong with it."""
        settled = (await self.each(conn, author, [change], source))[0]
        if isinstance(settled, Terminal):
            raise settled
        return settled

    async def each(
        self, conn: Connection, author: Author, changes: Sequence[Change], source: str
    ) -> list[Settled | Terminal]:
        """In order; changes of one record build on one another. What is wrong with a change
        stands in its place, and the others are stored; roll back if that is not wanted."""
        rules = await self.rulebook.hold(conn, {change.address[0] for change in changes})
        addresses = {change.address for change in changes}
        found = await writing.lock_many(conn, addresses)
        # Only a second change of a record asks which version the first one made.
        absent = addresses - found.keys() if len(addresses) < len(changes) else set()
        purged = await writing.last_versions(conn, absent)
        work = _Work(author, rules, self.hooks, found, purged)
        for change in changes:
            work.take(change)
        written = await writing.write(conn, work.writes, source=source)
        return [
            Settled(result.outcome, written[result.place])
            if isinstance(result, _Written)
            else result
            for result in work.results
        ]


class _Work:
    """The records as the changes taken so far leave them, and what is to be written for it."""

    def __init__(
        self,
        author: Author,
        rules: dict[str, Rules],
        hooks: Hooks,
        records: dict[tuple[str, str], Record],
        purged: dict[tuple[str, str], int],
    ) -> None:
        self._author = author
        self._rules = rules
        self._hooks = hooks
        self._found = records
        self._purged = purged
        # What each record becomes; worked out only where a second change asks.
        self._wanted: dict[tuple[str, str], tuple[Record | None, Proposal]] = {}
        self._at = datetime.now(UTC)
        self.writes: list[tuple[Record | None, Proposal]] = []
        self.results: list[_Written | Settled | Terminal] = []

    def take(self, change: Change) -> None:
        before = self._current(change.address)
        try:
            proposal = self._checked(before, change)
        except Terminal as refusal:
            self.results.append(refusal)
            return
        if before is not None and not proposal.changes(before):
            self.results.append(Settled("unchanged", before))
            return
        self._wanted[change.address] = (before, proposal)
        self.results.append(_Written(_OUTCOMES[proposal.action], len(self.writes)))
        self.writes.append((self._found.get(change.address), proposal))

    def _current(self, address: tuple[str, str]) -> Record | None:
        if address not in self._wanted:
            return self._found.get(address)
        before, proposal = self._wanted[address]
        version = before.version if before else self._purged.get(address, 0)
        return proposal.applied(before, self._at, version + 1)

    def _checked(self, before: Record | None, change: Change) -> Proposal:
        rules = self._rules[change.address[0]]
        proposal = change.propose(before, self._author, rules.reserves)
        # Before the hooks: they are asked only about what would change something.
        if before is not None and not proposal.changes(before):
            return proposal
        proposal = self._hooks.passed(before, proposal)
        rules.check(proposal)
        return proposal
