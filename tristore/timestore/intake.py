"""A process that reads bodies of strangers and writes what fits as Parquet (`python -m`).

It speaks over one socket: a request is a line of JSON with two open files, the body and where the
Parquet goes; the answer is a line of JSON. A body that brings it down harms nobody else.
"""

import errno
import json
import resource
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tristore.errors import InvalidRows, Terminal, Violation
from tristore.timestore import chunks
from tristore.timestore.chunks import Chunk
from tristore.timestore.fitting import ARROW, fit
from tristore.timestore.inference import infer, unknown
from tristore.timestore.schemas import Column

MAX_VIOLATIONS = 100
_ROW_GROUP = 250_000
_REQUEST_BYTES = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What the libraries hold for good after a large body is given back by ending.
_LARGE_KIB = 700 * 1024


@dataclass
class Intake:
    """One body on its way into a file."""

    source: IO[bytes]
    target: IO[bytes]
    format: str
    columns: list[Column]
    time_column: str
    evolve: bool
    most_json_bytes: int
    rows: int = 0
    low: datetime | None = None
    high: datetime | None = None
    violations: list[Violation] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        known = list(self.columns)
        try:
            self._write(known)
        except _NewColumns:
            # Only now are their types looked for, in all rows: most bodies bring none.
            new = infer(self._chunks(), known)
            self._write([*known, *new], ignoring=True)
        else:
            new = []
        if self.violations:
            raise InvalidRows(self.violations)
        if not self.rows:
            raise chunks.fault("/rows", "there are no rows")
        return {
            "rows": self.rows,
            "from": self._told(self.low),
            "to": self._told(self.high),
            "columns": [column.to_json() for column in new],
        }

    def _chunks(self) -> Iterator[Chunk]:
        self.source.seek(0)
        return chunks.read(self.source, self.format, self.most_json_bytes)

    def _write(self, columns: list[Column], *, ignoring: bool = False) -> None:
        """`ignoring` columns that hold only nulls and so have no type."""
        self.rows, self.violations = 0, []
        self.target.seek(0)
        self.target.truncate()
        schema = pa.schema([(column.name, ARROW[column.type]) for column in columns])
        with pq.ParquetWriter(
            self.target, schema, compression="snappy", write_page_checksum=True
        ) as writer:
            for table in _gathered(self._tables(columns, schema, ignoring)):
                writer.write_table(table, _ROW_GROUP)
        self.target.flush()

    def _tables(
        self, columns: list[Column], schema: pa.Schema, ignoring: bool
    ) -> Iterator[pa.Table]:
        for chunk in self._chunks():
            if not ignoring:
                self._refuse_unknown(chunk, columns)
            fitted = self._fitted(chunk, columns)
            self.rows += chunk.rows
            if len(self.violations) >= MAX_VIOLATIONS:
                return
            if not self.violations:
                yield pa.Table.from_arrays(fitted, schema=schema)

    def _fitted(self, chunk: Chunk, columns: list[Column]) -> list[pa.Array]:
        fitted = []
        for column in columns:
            made = fit(chunk, column, MAX_VIOLATIONS - len(self.violations))
            if isinstance(made, list):
                self.violations += made
            else:
                fitted.append(made)
                if column.name == self.time_column:
                    self._note(made)
        return fitted

    def _refuse_unknown(self, chunk: Chunk, columns: list[Column]) -> None:
        if not (names := unknown(chunk, columns)):
            return
        if self.evolve:
            raise _NewColumns
        raise InvalidRows(
            [
                Violation(chunks.place(chunk.first, name), "the dataset has no such column")
                for name in names[:MAX_VIOLATIONS]
            ]
        )

    def _note(self, times: pa.Array) -> None:
        bounds = pc.min_max(times).as_py()
        if bounds["min"] is not None:
            self.low = min(filter(None, (self.low, bounds["min"])))
            self.high = max(filter(None, (self.high, bounds["max"])))

    def _told(self, value: datetime | None) -> str | None:
        return None if value is None else value.astimezone(UTC).isoformat()


class _NewColumns(Exception):
    pass


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Few large row groups, however small the chunks are."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(part.num_rows for part in waiting) >= _ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def main() -> None:
    pa.set_cpu_count(2)
    line = socket.socket(fileno=int(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]) * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        data, files, _, _ = socket.recv_fds(line, _REQUEST_BYTES, 2)
        if not data:
            return
        line.sendall(json.dumps(_answer(json.loads(data), files)).encode() + b"\n")


def _answer(request: dict[str, Any], files: list[int]) -> dict[str, Any]:
    # The wall clock belongs to the caller; this ends a process whose caller was killed.
    spent = int(time.process_time()) + int(request.pop("seconds")) * 2 + 1
    resource.setrlimit(resource.RLIMIT_CPU, (spent, resource.RLIM_INFINITY))
    columns = [Column.of(column) for column in request.pop("columns")]
    with open(files[0], "rb") as source, open(files[1], "wb") as target:
        try:
            answer = Intake(source, target, columns=columns, **request).run()
        except InvalidRows as error:
            answer = {"violations": [v.as_json() for v in error.violations[:MAX_VIOLATIONS]]}
        except Terminal as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        except (pa.ArrowMemoryError, MemoryError):
            answer = {"error": "TooLarge", "message": "reading the body takes too much memory"}
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno in _FULL:
                return {"error": "StorageFull", "message": "the tables' disk is full"}
            kind = request["format"].removesuffix("file")
            message = f"this is no {kind} that can be read: {str(error)[:300]}"
            answer = {"violations": [{"path": "/", "message": message}]}
    large = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > _LARGE_KIB
    return {**answer, "spent": large}


if __name__ == "__main__":
    main()
