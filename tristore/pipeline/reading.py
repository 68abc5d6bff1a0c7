"""Chosen files of a table as a DataFrame, the partition column with them: in a folder or on S3."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalake import Schema
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tristore.pipeline import s3_files
from tristore.pipeline.contents import TableFile
from tristore.pipeline.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

_GLOB = re.compile(r"([\\*?\[\]{}])")


def read(
    spark: SparkSession, table: Table, schema: Schema, files: Sequence[TableFile]
) -> DataFrame:
    """Columns that a file was written without are null."""
    columns = StructType.fromJson(json.loads(schema.to_json()))
    if not files:
        return spark.createDataFrame([], columns)
    if table.place.local is None:
        return _read_objects(spark, table, columns, files)
    stored = StructType([column for column in columns if column.name != table.partition])
    # Spark would take a bracket or a star in the folder's name for a pattern.
    paths = [_GLOB.sub(r"\\\1", table.place.file(file.path)) for file in files]
    rows = spark.read.schema(stored).parquet(*paths)
    value = F.regexp_extract("_metadata.file_path", f"/{table.partition}=([^/]+)/[^/]+$", 1)
    return rows.withColumn(table.partition, value).select(*columns.names)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Reads the files it is told of; travels to executors."""

    uri: str
    options: dict[str, str] = field(repr=False)
    partition: str
    schema: bytes

    def __call__(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        import io

        import obstore
        import pyarrow as pa
        import pyarrow.parquet as pq

        store = s3_files.store(self.uri, self.options)
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        for batch in batches:
            for row in batch.to_pylist():
                content = io.BytesIO(bytes(obstore.get(store, row["path"]).bytes()))
                rows = pq.read_table(content)
                value = pa.array([row["value"]] * rows.num_rows, pa.string())
                full = rows.append_column(self.partition, value)
                yield from _fitted(full, schema).to_batches()


def _fitted(rows: "pa.Table", schema: "pa.Schema") -> "pa.Table":
    import pyarrow as pa

    columns = [
        rows[column.name].cast(column.type)
        if column.name in rows.column_names
        else pa.nulls(rows.num_rows, column.type)
        for column in schema
    ]
    return pa.table(columns, schema=schema)


def _read_objects(
    spark: SparkSession, table: Table, columns: StructType, files: Sequence[TableFile]
) -> DataFrame:
    import pyarrow as pa

    schema = pa.schema(table.schema()).serialize().to_pybytes()
    task = Fetch(table.place.uri, dict(table.place.options), table.partition, schema)
    named = [(file.path, file.partition) for file in files]
    return (
        spark.createDataFrame(named, "path string, value string")
        .repartition(min(len(files), spark.sparkContext.defaultParallelism))
        .mapInArrow(task, columns)
    )
