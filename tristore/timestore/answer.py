"""The rows of a query as bytes in the format asked for, cut off at a number of rows and bytes."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from tristore.timestore.requests import Limits
from tristore.timestore.values import as_lists

_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query gives: its columns by name and DuckDB's type, and the rows in batches."""

    columns: list[tuple[str, str]]
    batches: pa.RecordBatchReader

    @property
    def names(self) -> list[str]:
        """Told apart where the query calls two columns alike: a row by name, a Parquet file."""
        found: list[str] = []
        for name, _ in self.columns:
            same = sum(1 for earlier in found if earlier == name)
            found.append(f"{name}_{same}" if same else name)
        return found

    def values(self) -> Iterator[tuple[Any, ...]]:
        kinds = [kind for _, kind in self.columns]
        for batch in self.batches:
            yield from zip(*as_lists(batch, kinds), strict=True)


def encode(format: str, rows: Rows, limits: Limits, meta: dict[str, Any]) -> bytes:
    """Notes in `meta` whether rows were left out."""
    return _ENCODERS[format](rows, limits, meta)


def _json(rows: Rows, limits: Limits, meta: dict[str, Any]) -> bytes:
    lines = (orjson.dumps(row, option=_OPTIONS) for row in rows.values())
    body = b",".join(_cut(lines, limits, meta))
    columns = orjson.dumps([{"name": name, "type": kind} for name, kind in rows.columns])
    # Put together from pieces: the rows are bytes already.
    return b'{"columns":' + columns + b',"rows":[' + body + b"]," + orjson.dumps(meta)[1:]


def _ndjson(rows: Rows, limits: Limits, meta: dict[str, Any]) -> bytes:
    names = rows.names
    lines = (
        orjson.dumps(dict(zip(names, row, strict=True)), option=_OPTIONS) + b"\n"
        for row in rows.values()
    )
    return b"".join(_cut(lines, limits, meta))


def _csv(rows: Rows, limits: Limits, meta: dict[str, Any]) -> bytes:
    head = _csv_line([name for name, _ in rows.columns])
    lines = (_csv_line([_cell(value) for value in row]) for row in rows.values())
    return head + b"".join(_cut(lines, limits, meta))


def _csv_line(cells: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=_OPTIONS).decode().strip('"')


def _cut(lines: Iterator[bytes], limits: Limits, meta: dict[str, Any]) -> list[bytes]:
    kept: list[bytes] = []
    size = 0
    for line in lines:
        size += len(line)
        if len(kept) == limits.rows or size > limits.answer_bytes:
            meta["truncated"] = True
            return kept
        kept.append(line)
    return kept


def _arrow(rows: Rows, limits: Limits, meta: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    schema = _schema(rows)
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in _cut_batches(rows.batches, limits, meta):
            writer.write_batch(batch.rename_columns(schema.names))
    return bytes(sink.getvalue())


def _parquet(rows: Rows, limits: Limits, meta: dict[str, Any]) -> bytes:
    sink = pa.BufferOutputStream()
    schema = _schema(rows)
    with pq.ParquetWriter(sink, schema) as writer:
        for batch in _cut_batches(rows.batches, limits, meta):
            writer.write_batch(batch.rename_columns(schema.names))
    return bytes(sink.getvalue())


def _schema(rows: Rows) -> pa.Schema:
    found = rows.batches.schema
    names = rows.names
    return pa.schema([field.with_name(name) for field, name in zip(found, names, strict=True)])


def _cut_batches(
    batches: pa.RecordBatchReader, limits: Limits, meta: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    left, size = limits.rows, 0
    for batch in batches:
        size += batch.nbytes
        if not batch.num_rows:
            continue
        if size > limits.answer_bytes or not left:
            meta["truncated"] = True
            return
        yield batch.slice(0, left)
        if batch.num_rows > left:
            meta["truncated"] = True
            return
        left -= batch.num_rows


_ENCODERS: dict[str, Callable[[Rows, Limits, dict[str, Any]], bytes]] = {
    "json": _json,
    "ndjson": _ndjson,
    "csv": _csv,
    "arrow": _arrow,
    "parquet": _parquet,
}
