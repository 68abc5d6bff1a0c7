"""The checkpoints of Delta logs: made of what was found whole, with sums that readers compare."""

import logging

from deltalake import DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError

from tristore.errors import TableDamaged
from tristore.timestore import checksums, log_integrity
from tristore.timestore.place import Place

# For every commit: one that delta-rs makes on the way has no sums, and may stand for a damaged log.
NONE = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_EVERY = 100
_TRIES = 3
_log = logging.getLogger(__name__)


def whole(place: Place) -> DeltaTable:
    """The newest version, for what damage would be carried into: readers look only at what came
    after the newest checkpoint, and a file that the log has lost would be taken for an orphan."""
    try:
        log_integrity.refuse_checkpoint(place)
        handle = place.table()
        log_integrity.refuse_changed(place, -1, handle.version())
        return handle
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise TableDamaged(
            f"the Delta log in {place.uri.rpartition('/')[2]} is damaged ({error}); restore the "
            "table from a backup, or rebuild it"
        ) from error


def after_commit(place: Place, version: int) -> None:
    """Now and then, so that whoever loads the table has few commits to read. The commit counts
    without it."""
    if version % _EVERY:
        return
    try:
        make(place)
    except (DeltaError, OSError, TableDamaged) as error:
        _log.warning("no checkpoint: %s", error)


def make(place: Place) -> None:
    handle = whole(place)
    if place.local is None:
        handle.create_checkpoint()
        return
    file = place.local / "_delta_log" / f"{handle.version():020}.checkpoint.parquet"
    if checksums.beside(file).exists():
        return
    handle.create_checkpoint()
    for _ in range(_TRIES):
        checksums.write(file)
        # A second driver may have made the same one meanwhile.
        if checksums.agree(file):
            return
    checksums.beside(file).unlink(missing_ok=True)


def sweep(place: Place) -> None:
    """Sums of checkpoints that are gone."""
    if place.local is None:
        return
    for sums in (place.local / "_delta_log").glob(".*.checkpoint.parquet.*"):
        if not sums.with_name(sums.name[1:].rpartition(".")[0]).exists():
            sums.unlink(missing_ok=True)
