"""A day of micro-batches, compacted as it came: how long a query takes, beside a fresh table."""

import statistics
import time
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema

from bench.figure import Figure
from bench.pipeline_throughput import prepared
from tristore.pipeline.catalogue import find, table_of
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.compaction import compact
from tristore.pipeline.datafiles import describe
from tristore.pipeline.session import make_session
from tristore.pipeline.table import Batch, Table
from tristore.pipeline.tools import Tools
from tristore.timestore.dataset import Dataset

# A twentieth of the seconds of a day: what counts is how many files are left, and that is the same.
BATCHES, ROWS = 4_320, 50
# The driver looks every few seconds.
LOOK_EVERY = 100
QUERIES = 30
SQL = """
SELECT date_trunc('hour', occurred_at), mount, sum(size_delta), count(*)
FROM read_parquet({files}) GROUP BY ALL
"""
DAY = 1_762_000_000_000_000


def run(scale: float = 1.0) -> list[Figure]:
    count = int(BATCHES * scale)
    with prepared() as config:
        spark = make_session(config)
        try:
            tools = Tools(spark, config)
            streamed = find(config, "filestore_activity")
            fill(tools, streamed, count, ROWS, LOOK_EVERY)
            fresh = replace(streamed, folder="fresh")
            fill(tools, fresh, 1, count * ROWS, None)
            limit, open_day = seconds(tools, fresh), seconds(tools, streamed)
            compact(tools, streamed, wholly=True)
            compacted = seconds(tools, streamed)
        finally:
            spark.stop()
    name = f"query after {count:,} micro-batches"
    beside = (limit * 1000, "freshly written table")
    return [
        Figure(f"{name}, compacted", compacted * 1000, "ms", *beside, "1.3 x"),
        Figure(f"{name}, last files not yet", open_day * 1000, "ms", *beside, "-"),
    ]


def fill(tools: Tools, dataset: Dataset, batches: int, rows: int, look_every: int | None) -> None:
    table = table_of(tools.config, dataset)
    table.create(Schema.from_arrow(batch(0, 1).schema.append(pa.field("day", pa.string()))))
    for number in range(batches):
        append(table, number, batch(number * rows, rows))
        if look_every and number % look_every == look_every - 1:
            compact(tools, dataset)


def batch(start: int, rows: int) -> pa.Table:
    numbers = range(start, start + rows)
    times = pa.array([DAY + number * 100_000 for number in numbers], pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "sequence": pa.array(numbers, pa.int64()),
            "occurred_at": times,
            "mount": [f"m{number % 5}" for number in numbers],
            "path": [f"in/{number % 97}/file-{number}" for number in numbers],
            "size_delta": pa.array([number % 4096 for number in numbers], pa.int64()),
        }
    )


def append(table: Table, number: int, rows: pa.Table) -> None:
    assert table.place.local is not None
    folder = table.place.local / "data" / uuid4().hex
    part = folder / "day=2025-11-01"
    part.mkdir(parents=True)
    pq.write_table(rows, part / "rows.parquet")
    files = describe(table.place.local, folder, table.schema(), "day")
    last = (number + 1) * rows.num_rows
    span = Span("bench", last - rows.num_rows, last)
    table.append(Batch(f"{table.name}:bench", number, span), files)


def seconds(tools: Tools, dataset: Dataset) -> float:
    """The median, from opening the table to the last row."""
    place = table_of(tools.config, dataset).place
    return statistics.median(once(Path(place.uri)) for _ in range(QUERIES))


def once(folder: Path) -> float:
    begun = time.perf_counter()
    files = DeltaTable(folder).file_uris()
    with duckdb.connect() as conn:
        conn.execute(SQL.format(files=files)).fetchall()
    return time.perf_counter() - begun
