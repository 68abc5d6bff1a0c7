"""Whether this log fed the table: after a restore the same numbers may go to other events."""

import logging

import pyarrow as pa
import pyarrow.compute as pc

from tristore.errors import CheckpointMismatch
from tristore.pipeline import log
from tristore.pipeline.table import Table

_log = logging.getLogger(__name__)


def check(database_url: str, table: Table) -> None:
    """By the last event of the table, unless retention has taken it from one of the two."""
    through = table.through() if table.exists() else None
    if through is None:
        return
    held, logged = _held(table, through), log.event_id(database_url, through)
    if held is not None and logged is not None and held != logged:
        raise CheckpointMismatch(
            f"event {through} of the log is {logged}, but {held} in table {table.name}: was "
            "Postgres put back from a backup? Then run `tristore restored`, move the checkpoint "
            "folder and the tables away, and start again to make them anew from the log"
        )


def _held(table: Table, sequence: int) -> str | None:
    try:
        rows = table.place.table().to_pyarrow_dataset()
        found = rows.to_table(columns=["id"], filter=pc.field("ingress_sequence") == sequence)
    except (OSError, pa.ArrowException) as error:
        # A damaged file is told to who asks for its rows, and keeps no new ones out.
        _log.warning("the last event of table %s cannot be read: %s", table.name, error)
        return None
    return found["id"][0].as_py() if found.num_rows else None
