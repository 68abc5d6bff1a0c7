"""A Delta log is checkpointed with sums, and never when it is not as it was written."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from tristore.errors import TableDamaged
from tristore.pipeline import log_checkpoints
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.datafiles import describe
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.table import Batch, Table
from tristore.pipeline.tools import Tools
from tristore.pipeline.upkeep import Upkeep
from tristore.pipeline.vacuum import vacuum
from tristore.timestore import checksums
from tristore.timestore.dataset import Dataset
from tristore.timestore.place import Place
from tristore.timestore.retention import Retention
from tristore.timestore.snapshot import Tables

ROWS = pa.table({"n": pa.array([1, 2], pa.int64())})
NOW = datetime(2026, 11, 15, tzinfo=UTC)
EVENTS = Dataset(
    "events", "log", "at", "day", (), Retention(), 0, "r", "w", "active", "events", 1,
    NOW, "t", NOW, "t",
)  # fmt: skip
SCHEMA = Schema.from_arrow(ROWS.schema.append(pa.field("day", pa.string())))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = Table("events", Place(str(tmp_path / "events")))
    table.create(SCHEMA)
    append(table, 3)
    return table


def append(table: Table, count: int) -> None:
    base, first = log(table).parent, (table.through() or 0) // 2
    for number in range(first, first + count):
        folder = base / "data" / str(number) / "day=2026-03-01"
        folder.mkdir(parents=True)
        pq.write_table(ROWS, folder / "part-0.parquet")
        files = describe(base, folder.parent, SCHEMA, "day")
        table.append(Batch("app", number, Span("epoch", 2 * number, 2 * number + 2)), files)


def log(table: Table) -> Path:
    assert table.place.local is not None
    return table.place.local / "_delta_log"


def checkpoints(table: Table) -> list[Path]:
    return sorted(log(table).glob("*.checkpoint.parquet"))


def flip(file: Path, dice: random.Random) -> bytes:
    whole = file.read_bytes()
    content, bit = bytearray(whole), dice.randrange(8 * len(whole))
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    return whole


def through(table: Table) -> int:
    """As a reader sees it that has not seen the table before."""
    found = Tables(Place(str(log(table).parents[1]))).read("events", "events")
    assert found is not None
    return found.through


def test_any_flipped_bit_of_a_checkpoint_is_noticed(table: Table) -> None:
    log_checkpoints.make(table.place)
    append(table, 1)
    (file,) = checkpoints(table)
    assert through(table) == 8
    dice = random.Random(1)
    for _ in range(150):
        whole = flip(file, dice)
        with pytest.raises(TableDamaged, match="table events"):
            through(table)
        file.write_bytes(whole)
    flip(checksums.beside(file), dice)
    with pytest.raises(TableDamaged):
        through(table)


def test_checkpoints_come_with_the_commits_and_their_sums_go_with_them(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_checkpoints, "_EVERY", 5)
    append(table, 4)
    (file,) = checkpoints(table)
    assert (file.name[:20], checksums.beside(file).exists()) == (f"{5:020}", True)
    assert through(table) == 14
    file.unlink()
    log_checkpoints.sweep(table.place)
    assert not checksums.beside(file).exists()


def test_one_that_was_killed_before_its_sums_is_read_and_made_again(table: Table) -> None:
    table.place.table().create_checkpoint()
    (file,) = checkpoints(table)
    assert through(table) == 6
    log_checkpoints.make(table.place)
    assert checksums.beside(file).exists() and checksums.agree(file)
    assert through(table) == 6


def test_damage_is_not_carried_into_a_checkpoint(table: Table) -> None:
    log_checkpoints.make(table.place)
    append(table, 2)
    commit = log(table) / f"{4:020}.json"
    whole = commit.read_text("utf-8")
    commit.write_text(whole.replace('"add":', '"adt":'), "utf-8")
    with pytest.raises(TableDamaged, match="commit 4"):
        log_checkpoints.make(table.place)
    commit.write_text(whole, "utf-8")
    (file,) = checkpoints(table)
    content = flip(file, random.Random(1))
    with pytest.raises(TableDamaged, match="checkpoint of version 3"):
        log_checkpoints.make(table.place)
    file.write_bytes(content)
    log_checkpoints.make(table.place)
    assert len(checkpoints(table)) == 2


def test_what_a_damaged_log_has_lost_is_not_vacuumed(table: Table) -> None:
    commit = log(table) / f"{2:020}.json"
    whole = commit.read_text("utf-8")
    files = data_files(table)
    tools = keeping(table, 0)
    commit.write_text(whole.replace('"add":', '"adt":'), "utf-8")
    with pytest.raises(TableDamaged, match="commit 2"):
        vacuum(tools, EVENTS)
    commit.write_text(whole, "utf-8")
    assert vacuum(tools, EVENTS) == 0
    assert data_files(table) == files
    assert len(checkpoints(table)) == 1 and through(table) == 6


def test_what_is_about_to_be_committed_is_not_vacuumed(table: Table) -> None:
    base = log(table).parent
    coming = base / "data" / "coming" / "day=2026-03-01"
    begun = base / "data" / "begun"
    coming.mkdir(parents=True)
    begun.mkdir()
    pq.write_table(ROWS, coming / "part-0.parquet")
    assert vacuum(keeping(table, 24), EVENTS, keep_hours=0) == 0
    assert coming / "part-0.parquet" in data_files(table) and begun.exists()
    assert vacuum(keeping(table, 0), EVENTS) == 1


def keeping(table: Table, hours: int) -> Tools:
    place = log(table)
    config = PipelineConfig("", str(place.parents[1]), place, upkeep=Upkeep(keep_hours=hours))
    return Tools(None, config)  # type: ignore[arg-type]


def data_files(table: Table) -> list[Path]:
    return sorted(log(table).parent.glob("data/**/*.parquet"))
