"""A Delta table fed from the log: created once, appended to exactly once per batch."""

import logging
from dataclasses import dataclass

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError

from tristore.errors import CheckpointMismatch, OutcomeUnknown
from tristore.pipeline import log_checkpoints
from tristore.pipeline.checkpoint import Checkpoint, Span
from tristore.pipeline.datafiles import DataFile
from tristore.timestore import commit_digest
from tristore.timestore.place import Place
from tristore.timestore.snapshot import through_app

_TRIES = 5
_REBUILD = (
    "restore the checkpoint folder that wrote the table, or move both away and start again "
    "to rebuild the table from the log"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    app_id: str
    batch_id: int
    span: Span


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    place: Place
    partition: str = "day"

    def create(self, schema: Schema) -> None:
        if folder := self.place.local:
            folder.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            folder or self.place.uri,
            schema,
            mode="ignore",
            partition_by=[self.partition],
            storage_options=dict(self.place.options),
        )

    def exists(self) -> bool:
        return self.place.exists()

    def schema(self) -> Schema:
        return self.place.table().schema()

    def refuse_foreign(self, checkpoint: Checkpoint) -> None:
        """The table must end where the checkpoint's last finished or its planned batch ends."""
        finished, planned = checkpoint.finished().sequence, checkpoint.planned().sequence
        through = self._through(self.place.table()) if self.exists() else None
        if through is None and finished == checkpoint.initial.sequence:
            return
        if through in (finished, planned) and self._knows(checkpoint.app_of(self.name)):
            return
        raise CheckpointMismatch(
            f"table {self.name} ends at sequence {through or 0}, but the checkpoint at {finished} "
            f"(lost, copied, or of another table): {_REBUILD}"
        )

    def through(self) -> int | None:
        """The last sequence of the log that is in the table."""
        return self._through(self.place.table())

    def has(self, batch: Batch) -> bool:
        return self._has(self.place.table(), batch)

    def append(self, batch: Batch, files: list[DataFile]) -> None:
        """Commits the files once, whatever is repeated or fails on the way."""
        for _ in range(_TRIES):
            # One handle for check and commit: delta-rs refuses a commit of the same app made
            # since the handle was loaded, but never one made before.
            table = self.place.table()
            if self._has(table, batch):
                return
            try:
                self._commit(table, batch, files)
            except (DeltaError, OSError) as error:
                # It may have succeeded all the same; the next look at the table tells.
                _log.warning("commit of batch %d to %s: %s", batch.batch_id, self.name, error)
            else:
                log_checkpoints.after_commit(self.place, table.version() + 1)
                return
        raise OutcomeUnknown(
            f"batch {batch.batch_id} could not be committed to table {self.name} in {_TRIES} "
            "tries; it is safe to run the pipeline again"
        )

    def _has(self, table: DeltaTable, batch: Batch) -> bool:
        """Whether the batch is in; refuses when the table and the batch do not meet."""
        through = self._through(table)
        done = table.transaction_version(batch.app_id)
        if done is not None and done >= batch.batch_id:
            expected = batch.span.through
        elif through is None:
            return False
        else:
            expected = batch.span.after
        if through != expected:
            raise CheckpointMismatch(
                f"batch {batch.batch_id} holds ({batch.span.after}, {batch.span.through}], but "
                f"table {self.name} ends at {through} (a second pipeline?): {_REBUILD}"
            )
        return expected == batch.span.through

    def _commit(self, table: DeltaTable, batch: Batch, files: list[DataFile]) -> None:
        span, actions = batch.span, [file.action for file in files]
        reached = {batch.app_id: batch.batch_id, through_app(self.name): span.through}
        properties = CommitProperties(
            custom_metadata={
                "epoch": span.epoch,
                "fromSequence": span.after,
                "throughSequence": span.through,
                "batchId": batch.batch_id,
                commit_digest.KEY: commit_digest.digest(actions, reached),
            },
            app_transactions=[Transaction(app, number) for app, number in reached.items()],
        )
        table.create_write_transaction(
            [*actions],
            mode="append",
            schema=table.schema(),
            partition_by=[self.partition],
            commit_properties=properties,
            post_commithook_properties=log_checkpoints.NONE,
        )

    def _through(self, table: DeltaTable) -> int | None:
        return table.transaction_version(through_app(self.name))

    def _knows(self, app_id: str) -> bool:
        return self.place.table().transaction_version(app_id) is not None
