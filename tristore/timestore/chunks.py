"""A body of rows, whatever its format, as chunks of columns; runs in intake processes only."""

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from tristore.errors import InvalidRows, TooLarge, Violation
from tristore.events import strictjson
from tristore.timestore import bad_values

_ROWS = 50_000
_BLOCK_BYTES = 4 * 2**20
# More names than any dataset could have: rows whose keys are data.
_MOST_NAMES = 1000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows `first`, `first + 1`, … of the body; values are Python's (JSON) or Arrow's.

    In a chunk of plain `text` (CSV) everything is a text, so texts are read as numbers there.
    """

    first: int
    rows: int
    columns: dict[str, list[Any] | pa.Array]
    text: bool = False


def read(source: IO[bytes], format: str, most_json_bytes: int) -> Iterator[Chunk]:
    if format == "json":
        return _json(source, most_json_bytes)
    return _READERS[format](source)


def place(row: int, name: str) -> str:
    """A JSON pointer to a value."""
    return f"/rows/{row}/{name[:100].replace('~', '~0').replace('/', '~1')}"


def fault(path: str, message: str) -> InvalidRows:
    return InvalidRows([Violation(path, message)])


def _json(source: IO[bytes], most: int) -> Iterator[Chunk]:
    data = source.read(most + 1)
    if len(data) > most:
        raise TooLarge(
            f"one JSON document may have {most} bytes; send NDJSON, which is read row by row"
        )
    rows = _parsed(data, None, wrapped=3)
    del data
    if isinstance(rows, dict):
        if set(rows) != {"rows"}:
            raise fault("/", 'the object must have the one key "rows"')
        rows = rows["rows"]
    if not isinstance(rows, list):
        raise fault("/rows", "rows are an array of objects")
    for first in range(0, len(rows), _ROWS):
        yield _of_rows(rows[first : first + _ROWS], first)


def _ndjson(source: IO[bytes]) -> Iterator[Chunk]:
    first = 0
    while lines := source.readlines(_BLOCK_BYTES):
        found = [line for line in lines if not line.isspace()]
        if found:
            yield _of_rows(_lines(found, first), first)
            first += len(found)


def _lines(lines: list[bytes], first: int) -> list[Any]:
    """All at once, which is many times as fast; one by one if something is wrong."""
    try:
        rows = strictjson.loads(b"[" + b",".join(lines) + b"]", wrapped=2)
        if len(rows) == len(lines):
            return list(rows)
    except strictjson.StrictJsonError:
        pass
    return [_parsed(line, first + n, wrapped=1) for n, line in enumerate(lines)]


def _parsed(data: bytes, row: int | None, *, wrapped: int) -> Any:
    """A row, or all of them."""
    try:
        return strictjson.loads(data, wrapped=wrapped)
    except strictjson.StrictJsonError as error:
        if found := bad_values.find(data):
            number, name, why = found
            raise fault(place(number + (row or 0), name), why) from None
        raise fault("/" if row is None else f"/rows/{row}", str(error)) from None


def _of_rows(rows: list[Any], first: int) -> Chunk:
    if set(map(type, rows)) != {dict}:
        wrong = next(n for n, row in enumerate(rows) if type(row) is not dict)
        raise fault(f"/rows/{first + wrong}", "a row is an object")
    names = dict.fromkeys(chain.from_iterable(rows))
    _refuse_many(len(names))
    columns: dict[str, Any] = {name: [row.get(name) for row in rows] for name in names}
    return Chunk(first, len(rows), columns)


def _csv(source: IO[bytes]) -> Iterator[Chunk]:
    names = _header(source)
    reader = pa_csv.open_csv(
        source,
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return _of_batches(iter(reader), text=True)


def _header(source: IO[bytes]) -> list[str]:
    """The names in the first line; also what pyarrow would make of two equal ones is refused."""
    try:
        text = io.TextIOWrapper(source, "utf-8-sig", newline="")
        names = next(csv.reader(text), [])
        text.detach()
    except (csv.Error, UnicodeDecodeError) as error:
        raise fault("/", f"the header line cannot be read: {error}") from None
    source.seek(0)
    _refuse_many(len(names))
    if not names:
        raise fault("/", "CSV starts with a line of column names")
    if len(set(names)) < len(names):
        raise fault("/", "the header line names a column twice")
    return names


def _parquet(source: IO[bytes]) -> Iterator[Chunk]:
    file = pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True)
    _refuse_schema(file.schema_arrow)
    return _of_batches(file.iter_batches(_ROWS, use_threads=False))


def _arrow(source: IO[bytes]) -> Iterator[Chunk]:
    if source.read(4) != b"\xff\xff\xff\xff":
        # The reader would take whatever stands there for a length, and reserve as much.
        raise fault("/", "this is no stream of Arrow IPC messages")
    source.seek(0)
    reader = pa.ipc.open_stream(source)
    _refuse_schema(reader.schema)
    return _of_batches(iter(reader))


def _arrow_file(source: IO[bytes]) -> Iterator[Chunk]:
    reader = pa.ipc.open_file(source)
    _refuse_schema(reader.schema)
    return _of_batches(reader.get_batch(n) for n in range(reader.num_record_batches))


def _refuse_schema(schema: pa.Schema) -> None:
    _refuse_many(len(schema.names))
    if len(set(schema.names)) < len(schema.names):
        raise fault("/", "the schema names a column twice")
    for field in schema:
        if pa.types.is_nested(field.type) and not pa.types.is_dictionary(field.type):
            raise fault(f"/columns/{field.name}", f"{field.type} cannot be stored; send text")


def _refuse_many(names: int) -> None:
    if names > _MOST_NAMES:
        raise fault("/", f"the rows have {names} columns; a dataset has far fewer")


def _of_batches(batches: Iterator[pa.RecordBatch], *, text: bool = False) -> Iterator[Chunk]:
    first = 0
    for batch in batches:
        # Offsets and texts come from a stranger; the libraries believe them.
        batch.validate(full=True)
        for start in range(0, batch.num_rows, _ROWS * 10):
            part = batch.slice(start, _ROWS * 10)
            columns = dict(zip(part.schema.names, part.columns, strict=True))
            yield Chunk(first, part.num_rows, columns, text)
            first += part.num_rows


_READERS: dict[str, Callable[[IO[bytes]], Iterator[Chunk]]] = {
    "ndjson": _ndjson,
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
    "arrowfile": _arrow_file,
}
