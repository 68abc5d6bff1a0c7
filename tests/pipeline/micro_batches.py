"""Tables with many small commits, as a stream leaves them, made without running one."""

from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema

from tests.pipeline import log_rows
from tristore.pipeline import log
from tristore.pipeline.catalogue import find, table_of
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.datafiles import describe
from tristore.pipeline.table import Batch, Table
from tristore.pipeline.tools import Tools

SOURCES = {"events": log.read, "filestore_activity": log.read_activity}


def fill(tools: Tools, batches: int = 3, rows: int = 100) -> None:
    """New events in the log and in the table, a commit for every so many."""
    log_rows.append(tools.config.database_url, batches * rows)
    catch_up(tools, "events", rows)


def catch_up(tools: Tools, slug: str, rows: int) -> None:
    table = table_of(tools.config, find(tools.config, slug))
    head = log.head(tools.config.database_url)
    start = (table.through() or 0) if table.exists() else 0
    for after in range(start, head.last, rows):
        append(tools, table, Span(head.epoch, after, min(after + rows, head.last)))


def append(tools: Tools, table: Table, span: Span) -> None:
    read = SOURCES[table.name]
    found = pa.Table.from_batches(read(tools.config.database_url, span.after, span.through))
    if not table.exists():
        table.create(Schema.from_arrow(found.schema.append(pa.field("day", pa.string()))))
    days = pc.strftime(found["occurred_at"], "%Y-%m-%d")
    assert table.place.local is not None
    folder = table.place.local / "data" / uuid4().hex
    for day in days.unique().to_pylist():
        part = folder / f"day={day}"
        part.mkdir(parents=True)
        pq.write_table(found.filter(pc.equal(days, day)), part / "rows.parquet")
    files = describe(table.place.local, folder, table.schema(), "day")
    table.append(Batch(f"{table.name}:test", span.through, span), files)
