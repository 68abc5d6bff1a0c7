"""Rows written out as Parquet or CSV, counted on the way: into a folder or onto S3."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from tristore.pipeline import s3_files
from tristore.timestore.place import Place

if TYPE_CHECKING:
    import pyarrow as pa

# A quote is doubled, as RFC 4180 has it; Spark's own way is a backslash. Unless it is told not
# to, Spark cuts blanks off both ends of a text.
_CSV: dict[str, Any] = {
    "header": True,
    "escape": '"',
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "ignoreLeadingWhiteSpace": False,
    "ignoreTrailingWhiteSpace": False,
}


@dataclass(frozen=True, slots=True)
class Written:
    rows: int
    bytes: int
    files: int

    def __add__(self, other: "Written") -> "Written":
        return Written(self.rows + other.rows, self.bytes + other.bytes, self.files + other.files)


NOTHING = Written(0, 0, 0)


def write(rows: DataFrame, place: Place, name: str, format: str) -> Written:
    """Into a folder of that name below the place, which must not be there yet."""
    if format == "csv":
        rows = _plain(rows)
    if place.local is None:
        return _write_objects(rows, place, name, format)
    folder = place.local / name
    counted = Observation()
    writer = rows.observe(counted, F.count(F.lit(1)).alias("rows")).write
    if format == "csv":
        writer.options(**_CSV).csv(str(folder))
    else:
        writer.parquet(str(folder))
    found = [file for file in folder.iterdir() if file.suffix == f".{format}"]
    return Written(counted.get["rows"], sum(file.stat().st_size for file in found), len(found))


def _plain(rows: DataFrame) -> DataFrame:
    """CSV has no bytes: they become base64."""
    binary = [field.name for field in rows.schema if isinstance(field.dataType, BinaryType)]
    return rows.withColumns({name: F.base64(name) for name in binary})


@dataclass(frozen=True, slots=True)
class Task:
    """Writes one object; travels to executors."""

    uri: str
    options: Mapping[str, str] = field(repr=False)
    folder: str
    format: str

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import obstore
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet as pq
        from pyspark import TaskContext

        kinds: dict[str, Any] = {"parquet": pq.ParquetWriter, "csv": pa.csv.CSVWriter}
        with tempfile.TemporaryFile() as spool:
            writer, rows = None, 0
            for batch in batches:
                writer = writer or kinds[self.format](spool, batch.schema)
                writer.write_batch(batch)
                rows += batch.num_rows
            if writer is None:
                return
            writer.close()
            size = spool.seek(0, 2)
            spool.seek(0)
            task = TaskContext.get()
            assert task is not None
            # A task that is run again writes the same object again.
            path = f"{self.folder}/{task.partitionId():05}.{self.format}"
            obstore.put(s3_files.store(self.uri, self.options), path, spool)
        yield pa.record_batch({"rows": pa.array([rows]), "bytes": pa.array([size])})


def _write_objects(rows: DataFrame, place: Place, name: str, format: str) -> Written:
    task = Task(place.uri, place.options, name, format)
    answers = rows.mapInArrow(task, "rows bigint, bytes bigint").collect()
    return Written(sum(a.rows for a in answers), sum(a.bytes for a in answers), len(answers))
