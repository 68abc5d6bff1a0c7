"""One version of a Delta table: its files, how far into the log it reaches, when it was made."""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tristore.errors import Unavailable

# Delta's names of primitive types, in SQL: what an empty table is shown with.
_SQL_TYPES = {
    "string": "VARCHAR",
    "binary": "BLOB",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
}


def through_app(name: str) -> str:
    """The Delta application whose transaction version is the last log sequence in the table.

    A transaction version is part of the table's state: unlike the notes of a commit it survives
    log cleanup, and later commits that do not touch it (compaction) leave it as it is.
    """
    return f"{name}:through"


@dataclass(frozen=True, slots=True)
class Snapshot:
    name: str
    version: int
    files: list[str]
    rows: int
    columns: dict[str, str]
    partitions: list[str]
    through: int | None
    committed_ms: int


def names(root: Path) -> list[str]:
    """The tables below `root`: folders whose Delta log has begun."""
    logs = (log for log in root.glob("*/_delta_log") if any(log.glob("*.json")))
    return sorted(log.parent.name for log in logs)


def read(root: Path, name: str) -> Snapshot:
    try:
        return _read(root / name, name)
    except (DeltaError, OSError) as error:
        raise Unavailable(f"the log of table {name} cannot be read; try again") from error


def _read(folder: Path, name: str) -> Snapshot:
    table = DeltaTable(folder)
    if table.protocol().min_reader_version > 1:
        # Deletion vectors and mapped columns are invisible to a reader of plain Parquet.
        raise Unavailable(f"table {name} uses Delta reader features that queries cannot follow")
    return Snapshot(
        name=name,
        version=table.version(),
        # delta-rs percent-encodes even plain paths.
        files=[unquote(uri) for uri in table.file_uris()],
        rows=table.count(),
        columns={field.name: _sql_type(field.type.type) for field in table.schema().fields},
        partitions=list(table.metadata().partition_columns),
        through=table.transaction_version(through_app(name)),
        committed_ms=_committed_ms(folder / "_delta_log" / f"{table.version():020}.json"),
    )


def _sql_type(delta_type: str) -> str:
    # What is not listed is called alike in both: decimal(10,2).
    return _SQL_TYPES.get(delta_type, delta_type)


def _committed_ms(commit: Path) -> int:
    # Read by hand: delta-rs finds no history in a folder with `#` or `?` in its name.
    actions = (json.loads(line) for line in commit.read_text("utf-8").splitlines())
    return next(
        int(action["commitInfo"]["timestamp"]) for action in actions if "commitInfo" in action
    )
