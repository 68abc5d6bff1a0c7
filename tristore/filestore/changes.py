"""Changes: the one way nodes, their versions, sums and events come into the database, together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import orjson

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events import outbox
from tristore.events.payload import Payload
from tristore.events.payloads import FilestoreCommandCompleted
from tristore.filestore import announce
from tristore.filestore.announce import About
from tristore.filestore.model import Caller, Node, Rollup

_sql = load("tristore.filestore", "changes.sql")


def weight(node: Node) -> Rollup:
    """What a node itself adds to the directories above it."""
    if not node.present:
        return Rollup()
    return Rollup(node.size_bytes, 1, 0) if node.kind == "file" else Rollup(0, 0, 1)


@dataclass(slots=True)
class Changes:
    """What one transaction of an entry changes, from one node to a whole chunk.

    `above` are always the ids of all directories over a node, the root's too. `create`, `update`,
    `copy` and `delete` do what a command mostly needs; `write`, `count` and `tell` are the parts.
    """

    about: About
    nodes: list[Node] = field(default_factory=list)
    sums: dict[int, Rollup] = field(default_factory=dict)
    payloads: list[Payload] = field(default_factory=list)
    bytes: int = 0

    def create(self, node: Node, above: Iterable[int]) -> None:
        self.write(node)
        self.count(above, weight(node))
        self.tell(announce.created(node, self.about))

    def copy(self, source_id: int, node: Node, above: Iterable[int]) -> None:
        self.write(node)
        self.count(above, weight(node))
        self.tell(announce.copied(source_id, node, self.about))

    def update(self, before: Node, node: Node, above: Iterable[int]) -> None:
        self.write(node)
        self.recount(before, node, above)
        self.tell(announce.updated(before, node, self.about))

    def delete(self, before: Node, node: Node, above: Iterable[int]) -> None:
        self.write(node)
        self.recount(before, node, above)
        self.tell(announce.deleted(before, node, self.about))

    def write(self, node: Node) -> None:
        self.nodes.append(node)

    def recount(self, before: Node | None, node: Node, above: Iterable[int]) -> None:
        over = list(above)
        if before is not None:
            self.count(over, -weight(before))
        self.count(over, weight(node))

    def count(self, above: Iterable[int], more: Rollup) -> None:
        for node_id in above:
            had = self.sums.get(node_id)
            self.sums[node_id] = more if had is None else had + more

    def tell(self, payload: Payload) -> None:
        self.payloads.append(payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a transaction takes its entry: on (`applying`), or to its end.

    `told` is the event of the command's end; entries of imports and reconciliations have none.
    """

    owner: UUID | None
    caller: Caller
    state: Literal["applying", "completed", "failed"] = "completed"
    node_id: int | None = None
    progress: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    error: str | None = None
    told: FilestoreCommandCompleted | None = None


async def apply(conn: Connection, changes: Changes, step: Step) -> bool:
    """One statement. False: the entry is no longer the owner's, and nothing was changed."""
    return (await apply_all(conn, [(changes, step)]))[0]


async def apply_all(conn: Connection, taken: Sequence[tuple[Changes, Step]]) -> list[bool]:
    """The same for steps of several entries, which are committed together."""
    given = orjson.dumps([_step(*one) for one in taken]).decode()
    rows = await (await conn.execute(_sql.apply, {"steps": given}, prepare=True)).fetchall()
    done = {row[0] for row in rows}
    return [changes.about.journal_id in done for changes, _ in taken]


def _step(changes: Changes, step: Step) -> dict[str, Any]:
    payloads = changes.payloads if step.told is None else [*changes.payloads, step.told]
    return {
        "journal_id": changes.about.journal_id,
        "owner": step.owner,
        "state": step.state,
        "node_id": step.node_id,
        "progress": step.progress,
        "result": step.result,
        "error": step.error,
        "bytes": changes.bytes,
        "nodes_affected": len(changes.nodes),
        # As they are: the fields of a node are the columns of its table, and more is passed over.
        "nodes": changes.nodes,
        "rollups": [_sum(*item) for item in changes.sums.items()],
        "events": [_event(payload, step.caller) for payload in payloads],
    }


def _event(payload: Payload, caller: Caller) -> dict[str, Any]:
    row = outbox.row(payload, source=caller.source, correlation_id=caller.correlation_id)
    row["body_hash"] = row["body_hash"].hex()
    return row


def _sum(node_id: int, more: Rollup) -> dict[str, int]:
    return {
        "node_id": node_id,
        "size_bytes": more.size_bytes,
        "files": more.files,
        "directories": more.directories,
    }
