"""One version of a Delta table: its files by time, and how far it reaches; kept between queries."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from deltalake.schema import PrimitiveType
from pyarrow.dataset import Dataset, dataset
from pyarrow.fs import PyFileSystem

from tristore.errors import TableDamaged, Unavailable
from tristore.timestore import log_integrity
from tristore.timestore.place import Place, away

# Delta's names of primitive types, in SQL.
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
# Bounds in the Delta log are cut to milliseconds.
_ROUNDED = timedelta(milliseconds=1)


def through_app(name: str) -> str:
    """The Delta application whose transaction version is the last log sequence in the table.

    A transaction version is part of the table's state: unlike the notes of a commit it survives
    log cleanup, and later commits that do not touch it (compaction) leave it as it is.
    """
    return f"{name}:through"


def sql_type(delta_type: str) -> str:
    # What is not listed is called alike in both: decimal(10,2).
    return _SQL_TYPES.get(delta_type, delta_type)


@dataclass(frozen=True, slots=True)
class File:
    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`handle` stays at this version for as long as the query runs."""

    name: str
    place: Place
    version: int
    through: int
    columns: dict[str, str]
    partitions: list[str]
    # Every file is known to have every column.
    uniform: bool
    adds: pa.Table = field(repr=False)
    handle: DeltaTable = field(repr=False)

    def files(
        self, time_column: str, after: datetime | None = None, before: datetime | None = None
    ) -> list[File]:
        """Those that may hold rows with `after <= time < before`."""
        found = self.adds
        names = set(found.column_names)
        if after is not None and (high := f"max.{time_column}") in names:
            late = pc.greater_equal(found[high], pa.scalar(after - _ROUNDED))
            found = found.filter(pc.fill_null(late, True))
        if before is not None and (low := f"min.{time_column}") in names:
            found = found.filter(pc.fill_null(pc.less(found[low], pa.scalar(before)), True))
        paths, sizes = found["path"].to_pylist(), found["size_bytes"].to_pylist()
        return [
            # Paths in the Delta log are percent-encoded.
            File(self.place.file(unquote(path)), size)
            for path, size in zip(paths, sizes, strict=True)
        ]


def remote_files(root: Place, files: list[str], columns: Mapping[str, str]) -> Dataset:
    """Parquet files that lie where DuckDB cannot read; `files` are named below `root`. `columns`
    are by Delta's types: left to itself pyarrow would take those of the first file for all."""
    store = PyFileSystem(DeltaStorageHandler(root.uri, options=dict(root.options)))
    fields = [Field(name, PrimitiveType(kind)) for name, kind in columns.items()]
    return dataset(files, pa.schema(Schema(fields)), filesystem=store, format="parquet")


@dataclass(slots=True)
class _Known:
    """A handle that is brought up to date instead of being loaded anew."""

    snapshot: Snapshot
    commit: tuple[int, int, int]


class Tables:
    """The tables below a place, as this process has seen them last."""

    def __init__(self, root: Place) -> None:
        self._root = root
        self._known: dict[str, _Known] = {}

    def read(self, folder: str, name: str) -> Snapshot | None:
        """The newest version; None where no table has begun. `name` is what readers call it."""
        place = self._root.child(folder)
        try:
            return self._updated(folder, name, place)
        except (DeltaError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise away(place, error) or TableDamaged(
                f"the Delta log of table {name} cannot be read; restore the table from a backup, "
                "or rebuild it from the log"
            ) from error

    def forget(self, folder: str) -> None:
        self._known.pop(folder, None)

    def _updated(self, folder: str, name: str, place: Place) -> Snapshot | None:
        known, begin = self._known.pop(folder, None), -1
        if known is not None and _commit(place, known.snapshot.version) == known.commit:
            handle = known.snapshot.handle
            try:
                handle.update_incremental()
            except DeltaError:
                handle = place.table()
            if handle.version() == known.snapshot.version:
                self._known[folder] = known
                return known.snapshot
            begin = known.snapshot.version
        elif place.exists():
            log_integrity.refuse_checkpoint(place)
            handle = place.table()
        else:
            return None
        log_integrity.refuse_changed(place, begin, handle.version())
        found = _snapshot(name, folder, place, handle)
        commit = _commit(place, found.version)
        if commit is not None:
            self._known[folder] = _Known(found, commit)
        return found


def _commit(place: Place, version: int) -> tuple[int, int, int] | None:
    """What tells the commit of a version from one of the same number in a table made anew.

    On S3 there is none, and a table is loaded for every query.
    """
    if place.local is None:
        return None
    try:
        found = os.stat(Path(place.local, "_delta_log", f"{version:020}.json"))
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _snapshot(name: str, folder: str, place: Place, handle: DeltaTable) -> Snapshot:
    if handle.protocol().min_reader_version > 1:
        # Deletion vectors and mapped columns are invisible to a reader of plain Parquet.
        raise Unavailable(f"table {name} uses Delta reader features that queries cannot follow")
    columns = {field.name: sql_type(str(field.type.type)) for field in handle.schema().fields}
    partitions = list(handle.metadata().partition_columns)
    adds = pa.table(handle.get_add_actions(flatten=True))
    return Snapshot(
        name=name,
        place=place,
        version=handle.version(),
        through=handle.transaction_version(through_app(folder)) or 0,
        columns=columns,
        partitions=partitions,
        uniform=_uniform(adds, columns.keys() - partitions),
        adds=adds,
        handle=handle,
    )


def _uniform(adds: pa.Table, columns: set[str]) -> bool:
    """The statistics of a file count the nulls of each column it has."""
    counted = {f"null_count.{name}" for name in columns}
    return counted <= set(adds.column_names) and not any(adds[name].null_count for name in counted)
