"""Parquet files on S3, written with pyarrow inside a Spark task: no jar of ours speaks S3."""

import json
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from tristore.pipeline.datafiles import DataFile, Found, checked
from tristore.pipeline.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from obstore.store import S3Store

_ANSWER = "found string"
# Each is a file of the executor, which may have a thousand of them.
_MOST_OPEN = 100


@dataclass(frozen=True, slots=True)
class Task:
    """What a task needs to write; travels to executors."""

    uri: str
    options: Mapping[str, str] = field(repr=False)
    folder: str
    partition: str
    schema: bytes

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        """One file a partition value, or more where too many would be open at once; names are
        unique, so a repeated task disturbs nobody."""
        import pyarrow as pa

        files: dict[str, _File] = {}
        found: list[Found] = []
        try:
            for batch in batches:
                for value, rows in _split(batch, self.partition):
                    file = files[value] = files.pop(value) if value in files else _File()
                    file.add(rows)
                    if len(files) > _MOST_OPEN:
                        found.append(self._finish(files, next(iter(files))))
            found += [self._finish(files, value) for value in list(files)]
        finally:
            for file in files.values():
                file.spool.close()
        told = [json.dumps(asdict(one)) for one in found]
        yield pa.record_batch({"found": pa.array(told, pa.string())})

    def _finish(self, files: dict[str, "_File"], value: str) -> Found:
        with files[value].spool:
            return self._store(value, files.pop(value))

    def _store(self, value: str, file: "_File") -> Found:
        import obstore
        import pyarrow as pa
        import pyarrow.parquet as pq

        partition: dict[str, str | None] = {self.partition: value}
        path = f"{self.folder}/{self.partition}={value}/{uuid.uuid4().hex}.parquet"
        file.finish()
        stats = checked(pq.read_metadata(file.spool), self._expected(pa), partition, path)
        size = file.spool.seek(0, 2)
        file.spool.seek(0)
        obstore.put(store(self.uri, self.options), path, file.spool)
        return Found(path, size, int(time.time() * 1000), partition, stats)

    def _expected(self, pa: Any) -> "pa.Schema":
        return pa.ipc.read_schema(pa.py_buffer(self.schema))


class _File:
    """A Parquet file on the executor's disk: S3 is told of it once it is whole."""

    def __init__(self) -> None:
        self.spool: IO[bytes] = tempfile.TemporaryFile()
        self.writer: Any = None

    def add(self, rows: "pa.Table") -> None:
        import pyarrow.parquet as pq

        if self.writer is None:
            self.writer = pq.ParquetWriter(self.spool, rows.schema)
        self.writer.write_table(rows)

    def finish(self) -> None:
        self.writer.close()
        self.spool.seek(0)


def write(rows: DataFrame, table: Table, folder: str) -> list[DataFile]:
    import pyarrow as pa

    schema = pa.schema(table.schema()).serialize().to_pybytes()
    task = Task(table.place.uri, table.place.options, folder, table.partition, schema)
    answers = rows.mapInArrow(task, _ANSWER).collect()
    found = (Found(**json.loads(answer.found)) for answer in answers)
    return [DataFile.of(file) for file in sorted(found, key=lambda file: file.path)]


def store(uri: str, options: Mapping[str, str]) -> "S3Store":
    from obstore.store import S3Store

    keys: Any = {name: value for name, value in options.items() if name.startswith("aws_")}
    client: Any = {name: value for name, value in options.items() if name not in keys}
    return S3Store.from_url(uri, config=keys, client_options=client)


def _split(batch: "pa.RecordBatch", column: str) -> Iterator[tuple[str, "pa.Table"]]:
    """The rows of each value of the partition column, without it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.Table.from_batches([batch])
    for value in pc.unique(table[column]).to_pylist():
        yield value, table.filter(pc.equal(table[column], value)).drop_columns([column])
