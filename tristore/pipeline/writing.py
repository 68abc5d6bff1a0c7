"""Rows into Parquet files below a table, described and not yet committed: in a folder or on S3."""

from pyspark.sql import DataFrame

from tristore.pipeline import s3_files
from tristore.pipeline.datafiles import DataFile, describe
from tristore.pipeline.table import Table

# Columns whose values hardly repeat: to look for them in a dictionary is lost time.
_UNIQUE = ("id", "event_id", "payload", "body_hash", "path", "node_id")


def write(rows: DataFrame, table: Table, name: str) -> list[DataFile]:
    """Executors write; `name`, below the table's `data`, must be one that nobody used before."""
    folder = f"data/{name}"
    if table.place.local is None:
        return s3_files.write(rows, table, folder)
    target = table.place.local / folder
    plain = {f"parquet.enable.dictionary#{name}": "false" for name in _UNIQUE}
    write = rows.write.mode("errorifexists").options(**plain).partitionBy(table.partition)
    write.parquet(str(target))
    return describe(table.place.local, target, table.schema(), table.partition)
