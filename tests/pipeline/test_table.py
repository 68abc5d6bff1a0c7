"""Commits to the table: a repeated batch is taken once, one that does not fit is refused."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from tristore.errors import CheckpointMismatch, TristoreError
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.datafiles import DataFile, describe
from tristore.pipeline.table import Batch, Table
from tristore.timestore.place import Place

COLUMNS = pa.schema([("ingress_sequence", pa.int64()), ("text", pa.string()), ("day", pa.string())])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table("events", Place(str(tmp_path / "events")))
    table.create(Schema.from_arrow(COLUMNS))
    return table


def folder_of(table: Table) -> Path:
    return Path(table.place.uri)


def files(table: Table, name: str, span: Span) -> list[DataFile]:
    numbers = list(range(span.after + 1, span.through + 1))
    file = folder_of(table) / "data" / name / "day=2026-03-01" / "part.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"ingress_sequence": numbers, "text": [str(n) for n in numbers]}), file)
    return describe(folder_of(table), folder_of(table) / "data" / name, table.schema(), "day")


def rows(table: Table) -> list[int]:
    return sorted(table.place.table().to_pyarrow_table()["ingress_sequence"].to_pylist())


def test_a_batch_committed_twice_is_in_once(table: Table) -> None:
    first, second = Span("e", 0, 3), Span("e", 3, 5)
    table.append(Batch("events:a", 0, first), files(table, "0-0", first))
    table.append(Batch("events:a", 0, first), files(table, "0-1", first))
    table.append(Batch("events:a", 1, second), files(table, "1-0", second))
    assert rows(table) == [1, 2, 3, 4, 5]


def test_the_same_batch_from_two_at_once_is_in_once(table: Table) -> None:
    span = Span("e", 0, 3)
    attempts = [files(table, f"0-{number}", span) for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda found: table.append(Batch("events:a", 0, span), found), attempts))
    assert rows(table) == [1, 2, 3]


@pytest.mark.parametrize(
    ("app", "batch_id", "span"),
    [
        ("events:a", 0, Span("e", 0, 5)),
        ("events:a", 1, Span("e", 4, 5)),
        ("events:b", 0, Span("e", 0, 3)),
    ],
)
def test_a_batch_that_does_not_continue_the_table_is_refused(
    table: Table, app: str, batch_id: int, span: Span
) -> None:
    table.append(Batch("events:a", 0, Span("e", 0, 3)), files(table, "0-0", Span("e", 0, 3)))
    with pytest.raises(CheckpointMismatch, match="table events ends at 3"):
        table.append(Batch(app, batch_id, span), files(table, "other", span))
    assert rows(table) == [1, 2, 3]


def test_a_file_of_another_shape_is_refused(table: Table) -> None:
    folder = folder_of(table) / "data" / "0-0" / "day=2026-03-01"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"ingress_sequence": ["1"], "text": ["a"]}), folder / "part.parquet")
    with pytest.raises(TristoreError, match="but the table has"):
        describe(folder_of(table), folder, table.schema(), "day")


def test_a_torn_file_is_refused(table: Table) -> None:
    span = Span("e", 0, 3)
    files(table, "0-0", span)
    (file,) = (folder_of(table) / "data").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(pa.ArrowInvalid):
        describe(folder_of(table), folder_of(table) / "data" / "0-0", table.schema(), "day")


def test_times_of_any_year_are_found_by_readers_of_statistics(tmp_path: Path) -> None:
    columns = pa.schema([("at", pa.timestamp("us", tz="UTC")), ("day", pa.string())])
    table = Table("events", Place(str(tmp_path / "events")))
    table.create(Schema.from_arrow(columns))
    times = [datetime(year, 1, 1, tzinfo=UTC) for year in (1, 999, 2026)]
    for time in times:
        file = tmp_path / f"events/data/x/day={time.isoformat()[:10]}/part.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(pa.table({"at": [time]}, schema=columns.remove(1)), file)
    found = describe(folder_of(table), folder_of(table) / "data", table.schema(), "day")
    table.append(Batch("events:a", 0, Span("e", 0, 3)), found)
    rows = table.place.table().to_pyarrow_dataset()
    old = rows.to_table(filter=ds.field("at") < datetime(1500, 1, 1, tzinfo=UTC))
    assert sorted(old["at"].to_pylist()) == times[:2]


def test_what_a_late_task_still_writes_is_no_file_of_the_table(table: Table) -> None:
    span = Span("e", 0, 3)
    files(table, "0-0/_temporary/0/_temporary/attempt_1", span)
    assert [file.rows for file in files(table, "0-0", span)] == [3]
