"""One commit that takes files of a table out and puts others in, whoever else writes meanwhile."""

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import RemoveAction

from tristore.errors import OutcomeUnknown
from tristore.pipeline import log_checkpoints
from tristore.pipeline.contents import SORTED, TableFile, contents
from tristore.pipeline.datafiles import DataFile
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.table import Table
from tristore.timestore import commit_digest

_TRIES = 10
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Change:
    """`same_rows`: readers of changes have nothing to read, for the rows are those that were.
    `after`: the number of the last rewrite when the table was read, where that matters."""

    action: str
    removed: Sequence[TableFile] = ()
    added: Sequence[DataFile] = ()
    same_rows: bool = True
    after: int | None = None

    def actions(self, column: str) -> list[Any]:
        added = [replace(file.action, data_change=not self.same_rows) for file in self.added]
        now = int(time.time() * 1000)
        removed = [
            RemoveAction(file.path, not self.same_rows, now, file.size, {column: file.partition})
            for file in self.removed
        ]
        return [*added, *removed]


def sorted_name() -> str:
    """A folder for one rewrite, never used before."""
    return f"{SORTED}{uuid.uuid4().hex}"


def commit(table: Table, locks: TableLocks, change: Change) -> bool:
    """False if another rewrite was first: look at the table again."""
    for _ in range(_TRIES):
        with locks.of(table.name):
            # One handle for look and commit: delta-rs refuses it if another rewrite of this
            # table was committed since, and lets appends pass.
            handle = table.place.table()
            present = _paths(handle, table.partition)
            if change.added and {file.action.path for file in change.added} <= present:
                return True
            if not {file.path for file in change.removed} <= present:
                return False
            if change.after not in (None, last(handle, table)):
                return False
            try:
                _commit(handle, table, change)
            except (DeltaError, OSError) as error:
                # It may have succeeded all the same; the next look at the table tells.
                _log.warning("%s of %s: %s", change.action, table.name, error)
            else:
                log_checkpoints.after_commit(table.place, handle.version() + 1)
                return True
    raise OutcomeUnknown(
        f"the {change.action} of table {table.name} could not be committed in {_TRIES} tries; "
        "it is safe to try again"
    )


def _commit(handle: DeltaTable, table: Table, change: Change) -> None:
    # delta-rs lets two commits remove the same file; the same application it lets only once.
    number, actions = last(handle, table) + 1, change.actions(table.partition)
    told = commit_digest.digest(actions, {_app(table): number})
    handle.create_write_transaction(
        actions,
        mode="append",
        schema=handle.schema(),
        partition_by=[table.partition],
        commit_properties=CommitProperties(
            custom_metadata={"action": change.action, commit_digest.KEY: told},
            app_transactions=[Transaction(_app(table), number)],
        ),
        post_commithook_properties=log_checkpoints.NONE,
    )


def last(handle: DeltaTable, table: Table) -> int:
    """The number of the newest rewrite in a version of the table."""
    return handle.transaction_version(_app(table)) or 0


def _app(table: Table) -> str:
    return f"{table.name}:rewrites"


def _paths(handle: DeltaTable, column: str) -> set[str]:
    return {file.path for files in contents(handle, column).values() for file in files}
