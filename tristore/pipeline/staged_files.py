"""Staged files as a frame, read by executors from a folder or from S3; and whether one is whole."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tristore.pipeline.s3_files import store
from tristore.timestore.place import Place

if TYPE_CHECKING:
    import pyarrow as pa

_PATTERN = re.compile(r"([\\{}\[\]*?])")


@dataclass(frozen=True, slots=True)
class Download:
    """What a task needs to read staged files from S3; travels to executors."""

    uri: str
    options: Mapping[str, str] = field(repr=False)
    schema: bytes

    def __call__(self, names: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for batch in names:
            for name in batch.column(0).to_pylist():
                with fetched(Place(self.uri, self.options), name) as file:
                    yield from self._rows(file)

    def _rows(self, file: IO[bytes]) -> Iterator["pa.RecordBatch"]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        wanted = pa.ipc.read_schema(pa.py_buffer(self.schema))
        for batch in pq.ParquetFile(file, page_checksum_verification=True).iter_batches():
            columns = [
                batch.column(f.name)
                if f.name in batch.schema.names
                else pa.nulls(len(batch), f.type)
                for f in wanted
            ]
            yield pa.record_batch(columns, schema=wanted)


def frame(spark: SparkSession, place: Place, files: Sequence[str], schema: StructType) -> DataFrame:
    """The rows of all files; columns that a file is too old to have are null."""
    if place.local is None:
        return _from_s3(spark, place, files, schema)
    # Spark takes paths for patterns.
    paths = [_PATTERN.sub(r"\\\1", str(place.local / file)) for file in files]
    reader = spark.read.schema(schema).option("parquet.page.verify-checksum.enabled", "true")
    return reader.parquet(*paths)


def damage(place: Place, file: str) -> str | None:
    """What is wrong with a staged file; None if it reads well to its end, or if nothing can be
    said because its storage is away."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if place.local is not None and not (place.local / file).parent.is_dir():
        return None
    try:
        with fetched(place, file) as source:
            for _ in pq.ParquetFile(source, page_checksum_verification=True).iter_batches():
                pass
    except FileNotFoundError:
        return "the staged file is gone; send the rows again"
    except (pa.ArrowException, OSError) as error:
        # With an errno it is the disk that speaks, and not the reader.
        if isinstance(error, OSError) and error.errno is not None:
            return None
        return "the staged file is damaged; send the rows again"
    return None


def fetched(place: Place, file: str) -> IO[bytes]:
    """An open file with the bytes; of S3 a copy without a name."""
    if place.local is not None:
        return (place.local / file).open("rb")
    import obstore

    copy = tempfile.TemporaryFile()
    for piece in obstore.get(store(place.uri, place.options), file).stream():
        copy.write(piece)
    copy.seek(0)
    return copy


def _from_s3(
    spark: SparkSession, place: Place, files: Sequence[str], schema: StructType
) -> DataFrame:
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    task = Download(place.uri, place.options, wanted.serialize().to_pybytes())
    names = spark.createDataFrame([(file,) for file in files], "file string")
    return names.repartition(min(len(files), 64)).mapInArrow(task, schema)
