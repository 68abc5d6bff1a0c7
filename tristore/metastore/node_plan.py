"""What a page of node changes makes of the records: which versions to write, which are refused."""

from collections.abc import Mapping
from datetime import UTC, datetime

from tristore.errors import InvalidRecord, Refused, Violation
from tristore.metastore.hooks import Hooks
from tristore.metastore.model import RESERVED, Action, Proposal, Record
from tristore.metastore.names import key_violation
from tristore.metastore.node_view import NodeChange, claimed_version
from tristore.metastore.refusals import Refusal
from tristore.metastore.rules import Rules

ACTOR = "filestore.sync"


class NodePlan:
    """Changes are added in the order of the log; those of one node build on one another."""

    def __init__(
        self, namespace: str, records: Mapping[str, Record], rules: Rules, hooks: Hooks
    ) -> None:
        self.wanted: list[tuple[Record | None, Proposal]] = []
        self.refused: list[Refusal] = []
        self._namespace = namespace
        self._stored = records
        self._rules = rules
        self._hooks = hooks
        self._told = {key: claimed_version(record.metadata) for key, record in records.items()}
        self._latest = dict(records)
        self._unmade: dict[str, Proposal] = {}
        self._now = datetime.now(UTC)

    def add(self, change: NodeChange, *, mending: bool) -> None:
        """A version the record tells of already, or a later one, has nothing to say: the event is
        repeated, replayed or late."""
        if not mending and change.version <= self._told.get(change.key, -1):
            return
        before = self._before(change.key)
        try:
            proposal = self._admitted(before, change)
        except InvalidRecord as error:
            self.refused.append(Refusal.of(change, "rules", error.violations))
        except Refused as error:
            self.refused.append(Refusal.of(change, "rules", [Violation("", str(error))]))
        else:
            if proposal.changes(before):
                self.wanted.append((self._stored.get(change.key), proposal))
                self._unmade[change.key] = proposal
                self._told[change.key] = change.version

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of its node that each record tells of after the plan."""
        return self._told

    def _before(self, key: str) -> Record | None:
        """The record as the changes so far leave it, made only when there is another change."""
        record = self._latest.get(key)
        if key in self._unmade:
            version = record.version + 1 if record else 1
            record = self._unmade.pop(key).applied(record, self._now, version)
            self._latest[key] = record
        return record

    def _admitted(self, before: Record | None, change: NodeChange) -> Proposal:
        if violation := key_violation(change.key, "/key"):
            raise InvalidRecord([violation])
        proposal = self._hooks.passed(before, _proposal(self._namespace, before, change))
        self._rules.check(proposal)
        return proposal


def _proposal(namespace: str, before: Record | None, change: NodeChange) -> Proposal:
    """The sync's own object anew; tags, owner and other metadata are people's and stay."""
    return Proposal(
        namespace=namespace,
        key=change.key,
        metadata={**(before.metadata if before else {}), RESERVED: change.view},
        tags=before.tags if before else (),
        owner=before.owner if before else None,
        deleted=change.deleted,
        action=_action(before, deleted=change.deleted),
        actor=ACTOR,
        correlation_id=change.correlation_id,
    )


def _action(before: Record | None, *, deleted: bool) -> Action:
    was_deleted = before is not None and before.deleted_at is not None
    if deleted and not was_deleted:
        return "delete"
    if before is None:
        return "create"
    return "restore" if was_deleted and not deleted else "update"
