"""Rows into Parquet files below a table, described and not yet committed: in a folder or on S3."""

from pyspark.sql import DataFrame

from tristore.pipeline import s3_files
from tristore.pipeline.datafiles import DataFile, describe
from tristore.pipeline.table import Table


def write(rows: DataFrame, table: Table, name: str) -> list[DataFile]:
    """Executors write; `name`, below the table's `data`, must be one that nobody used before."""
    folder = f"data/{name}"
    if table.place.local is None:
        return s3_files.write(rows, table, folder)
    target = table.place.local / folder
    rows.write.mode("errorifexists").partitionBy(table.partition).parquet(str(target))
    return describe(table.place.local, target, table.schema(), table.partition)
