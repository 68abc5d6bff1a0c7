"""Parquet files that Spark wrote, checked against the table and described for its Delta log."""

import json
from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Schema
from deltalake.transaction import AddAction

from tristore.errors import TristoreError

# Longer texts say little about a file and would swell the Delta log.
_LONGEST_BOUND = 256


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a file where it was written: enough to describe it anywhere."""

    path: str
    size: int
    modified_ms: int
    partition: dict[str, str | None]
    stats: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DataFile:
    rows: int
    low: dict[str, Any]
    high: dict[str, Any]
    action: AddAction

    @classmethod
    def of(cls, found: Found) -> "DataFile":
        stats = found.stats
        action = AddAction(
            path=found.path,
            size=found.size,
            partition_values=found.partition,
            modification_time=found.modified_ms,
            data_change=True,
            stats=json.dumps(stats),
        )
        return cls(stats["numRecords"], stats["minValues"], stats["maxValues"], action)


def describe(table: Path, folder: Path, schema: Schema, partition: str) -> list[DataFile]:
    """All Parquet files below `folder`, in a fixed order; the Delta log checks none of this."""
    expected = pa.schema(schema)
    # What a task that nobody waits for any more still writes lies below `_temporary`.
    found = (file for file in folder.rglob("*.parquet") if "_temporary" not in file.parts)
    files = sorted(found)
    return [_describe(table, file, expected, partition) for file in files]


def _describe(table: Path, file: Path, expected: pa.Schema, column: str) -> DataFile:
    partition, state = _partition_values(file, column), file.stat()
    found = Found(
        path=file.relative_to(table).as_posix(),
        size=state.st_size,
        modified_ms=int(state.st_mtime * 1000),
        partition=partition,
        stats=checked(pq.read_metadata(file), expected, partition, file.name),
    )
    return DataFile.of(found)


def checked(
    footer: pq.FileMetaData, expected: pa.Schema, partition: Container[str], name: str
) -> dict[str, Any]:
    """The statistics in a file's footer, once its columns are those of the table."""
    found = _columns(footer.schema.to_arrow_schema())
    wanted = {name: kind for name, kind in _columns(expected).items() if name not in partition}
    if found != wanted:
        raise TristoreError(f"{name} has columns {found}, but the table has {wanted}")
    return _statistics(footer)


def _columns(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def _partition_values(file: Path, column: str) -> dict[str, str | None]:
    pairs = (part.split("=", 1) for part in file.parts if "=" in part)
    return {name: value for name, value in pairs if name == column}


def _statistics(footer: pq.FileMetaData) -> dict[str, Any]:
    stats: dict[str, Any] = {
        "numRecords": footer.num_rows,
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
    }
    for index in range(footer.num_columns):
        _add_column(stats, footer, index)
    return stats


def _add_column(stats: dict[str, Any], footer: pq.FileMetaData, index: int) -> None:
    groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
    name = footer.schema.column(index).path
    known = [group.statistics for group in groups if group.statistics is not None]
    if len(known) < len(groups):
        return
    if all(group.has_null_count for group in known):
        stats["nullCount"][name] = sum(group.null_count for group in known)
    valued = [group for group in known if group.num_values > 0]
    if not valued or not all(group.has_min_max for group in valued):
        return
    low, high = min(group.min for group in valued), max(group.max for group in valued)
    if _is_bound(low) and _is_bound(high):
        stats["minValues"][name], stats["maxValues"][name] = _as_json(low), _as_json(high)


def _is_bound(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_BOUND
    return isinstance(value, (int, datetime))


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        # Not by strftime, which writes the year 999 with three digits.
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    return value
