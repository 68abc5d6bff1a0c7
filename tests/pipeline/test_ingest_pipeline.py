"""Staged ingests come into their datasets' tables: each row once, whatever fails on the way."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.support.s3 import moto
from tristore import failpoints
from tristore.config import Settings, TimestoreSettings
from tristore.db.pool import Pool, make_pool
from tristore.errors import CheckpointMismatch
from tristore.pipeline import batches, exporting, exports, staged_sweep
from tristore.pipeline.checkpoint import Checkpoint
from tristore.pipeline.log import Position
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.staged import STAGED, staged_writer
from tristore.pipeline.tools import Tools
from tristore.timestore import chunks
from tristore.timestore.datasets import Datasets, Maker, Wanted
from tristore.timestore.ingest import Batch
from tristore.timestore.ingesting import Asked, Ingesting, open_ingesting
from tristore.timestore.retention import Retention
from tristore.timestore.schemas import Column

TYPES = ("timestamp", "string", "double", "long", "boolean", "date")
COLUMNS = tuple(Column(f"c_{kind}", kind) for kind in TYPES)
TIME = "c_timestamp"


@dataclass(frozen=True)
class Stage:
    """A timestore without HTTP: datasets are made, rows staged."""

    config: PipelineConfig
    pool: Pool
    ingesting: Ingesting

    async def make(self, slug: str, granularity: Any = "day") -> None:
        columns = COLUMNS
        wanted = Wanted(
            slug, TIME, granularity, columns, Retention(), 0, "timestore:read", "timestore:write"
        )
        await Datasets(self.pool).create(wanted.checked(), Maker("test", "t", None))

    async def send(self, slug: str, *rows: dict[str, Any]) -> Batch:
        dataset = await Datasets(self.pool).get(slug)
        token = "00000000-0000-0000-0000-000000000001"
        asked = Asked(dataset, "json", True, token, "test", None, None)

        async def body() -> AsyncIterator[bytes]:
            yield orjson.dumps(rows)

        return (await self.ingesting.take(asked, body())).batch

    async def state(self, batch: Batch) -> Batch:
        found = await self.ingesting.find(batch.id)
        assert found is not None
        return found

    async def table(self, slug: str) -> pa.Table:
        dataset = await Datasets(self.pool).get(slug)
        return self.config.tables.child(dataset.folder).table().to_pyarrow_table()


@asynccontextmanager
async def staging(config: PipelineConfig, **timestore: Any) -> AsyncIterator[Stage]:
    given = TimestoreSettings(root=config.tables_root, ingest_processes=1, **timestore)
    settings = Settings(
        database_url=config.database_url, data_dir=config.checkpoint.parent, timestore=given
    )
    pool = make_pool(config.database_url, name="test")
    async with pool, open_ingesting(settings, pool) as ingesting:
        yield Stage(config, pool, ingesting)


@pytest.fixture
async def stage(config: PipelineConfig) -> AsyncIterator[Stage]:
    async with staging(config) as stage:
        yield stage


@pytest.fixture
def fail() -> Iterator[Callable[[str], None]]:
    yield failpoints.arm
    failpoints.arm("")


def run(spark: SparkSession, config: PipelineConfig) -> None:
    """As the driver does: Spark gives a Python process ten seconds to answer, and a busy machine
    may take longer; then it is asked again."""
    while True:
        try:
            staged_writer(spark, config).trigger(availableNow=True).start().awaitTermination()
            return
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise


def row(number: int, time: str = "2026-11-15T10:00:00Z", **more: Any) -> dict[str, Any]:
    return {TIME: time, "c_long": number, **more}


def flip_a_bit(file: Path) -> None:
    """In what a value is made of."""
    column = pq.read_metadata(file).row_group(0).column(3)
    data = bytearray(file.read_bytes())
    last = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size
    data[last - 1] ^= 1
    file.write_bytes(data)


def numbers(table: pa.Table) -> list[int]:
    return sorted(table["c_long"].to_pylist())


async def test_rows_come_into_the_partitions_of_their_tables(
    spark: SparkSession, stage: Stage
) -> None:
    config = replace(stage.config, max_ingest_rows_per_trigger=3)
    await stage.make("by_hour", "hour")
    await stage.make("by_month", "month")
    full = {"c_string": "ż", "c_double": 0.1, "c_boolean": False, "c_date": "2026-11-14"}
    first = await stage.send("by_hour", row(1, **full), row(2, "2026-11-15T23:59:59.999999Z"))
    second = await stage.send("by_hour", row(3, "2026-11-15T10:30:00+02:00"))
    other = await stage.send("by_month", row(4), row(5, "1999-12-31T23:00:00-05:00"))
    third = await stage.send("by_hour", row(6))
    run(spark, config)

    hours = await stage.table("by_hour")
    found = dict(zip(hours["c_long"].to_pylist(), hours["_partition"].to_pylist(), strict=True))
    hour = "2026-11-15T{}".format
    assert found == {1: hour("10"), 2: hour("23"), 3: hour("08"), 6: hour("10")}
    whole = next(r for r in hours.to_pylist() if r["c_long"] == 1)
    assert {name: str(whole[name]) for name in full} == {n: str(v) for n, v in full.items()}
    months = await stage.table("by_month")
    assert sorted(months["_partition"].to_pylist()) == ["2000-01", "2026-11"]
    told = [await stage.state(batch) for batch in (first, second, other, third)]
    assert {batch.state for batch in told} == {"committed"} and told[0].committed_at
    assert [batch.table_version for batch in told] == [1, 1, 1, 2], "three rows at a time"


@pytest.mark.parametrize(
    ("point", "lost"),
    [
        ("before_write", False),
        ("after_parquet", False),
        ("after_delta_commit", False),
        ("after_delta_commit", True),
    ],
)
async def test_a_driver_that_fails_anywhere_brings_each_row_once(
    spark: SparkSession, stage: Stage, fail: Callable[[str], None], point: str, lost: bool
) -> None:
    await stage.make("once")
    await stage.make("twice")
    batch = await stage.send("once", row(1))
    await stage.send("twice", row(2))
    fail(f"staged.{point}:raise:*")
    with pytest.raises(StreamingQueryException):
        run(spark, stage.config)
    fail("")
    assert (await stage.state(batch)).state == "staged"
    if lost:
        shutil.rmtree(stage.config.checkpoint / STAGED)
    # The table is there by now, without this column.
    await stage.send("once", row(3, wind=7))
    run(spark, stage.config)
    once = await stage.table("once")
    assert numbers(once) == [1, 3] and numbers(await stage.table("twice")) == [2]
    assert {r["c_long"]: r["wind"] for r in once.to_pylist()} == {1: None, 3: 7}
    assert (await stage.state(batch)).state == "committed"


async def test_what_is_deleted_damaged_or_of_no_use_harms_nothing_else(
    spark: SparkSession, stage: Stage
) -> None:
    await stage.make("gone")
    old = await stage.send("gone", row(1))
    await Datasets(stage.pool).delete("gone", "test")
    # As if the driver had looked before the dataset was deleted.
    database = stage.config.database_url
    log_rows.execute(database, "UPDATE timestore.ingest_batches SET state = 'staged'")
    await stage.make("gone")
    await stage.send("gone", row(2))
    await stage.make("damaged")
    sent = [await stage.send("damaged", row(n, c_string="x" * 1000)) for n in range(3)]
    files = log_rows.fetch(database, "SELECT file FROM timestore.ingest_batches ORDER BY id")
    flipped, lost = (Path(stage.config.tables_root, str(file[0])) for file in files[2:4])
    flip_a_bit(flipped)
    lost.unlink()
    run(spark, stage.config)
    assert numbers(await stage.table("gone")) == [2]
    assert (await stage.state(old)).error == "the dataset was deleted"
    assert numbers(await stage.table("damaged")) == [2]
    told = [await stage.state(batch) for batch in sent]
    assert [batch.state for batch in told] == ["failed", "failed", "committed"]
    assert all("send the rows again" in str(batch.error) for batch in told[:2])

    waiting = await stage.send("gone", row(4))
    flipped.with_name("named-by-no-batch.parquet").write_bytes(b"")
    assert staged_sweep.sweep(stage.config) == 0, "too young"
    assert staged_sweep.sweep(replace(stage.config, staged_keep_seconds=-5)) == 5
    left = [
        str(path.name) for path in Path(stage.config.tables_root, "_staging").rglob("*.parquet")
    ]
    query = f"SELECT file FROM timestore.ingest_batches WHERE id = {waiting.id}"
    assert [str(row[0]).rpartition("/")[2] for row in log_rows.fetch(database, query)] == left


def exported(spark: SparkSession, config: PipelineConfig, slug: str, format: str) -> Path:
    number = exports.queue(config.database_url, slug, format, None, (None, None))
    export = exports.claim(config.database_url, number)
    assert export is not None and exporting.run(Tools(spark, config), export)
    root = exporting.exports_place(config).local
    assert root is not None
    (file,) = (root / export.target).rglob(f"*.{format}")
    return file


async def test_an_export_holds_texts_as_they_are_and_columns_that_no_row_has_had(
    spark: SparkSession, stage: Stage
) -> None:
    await stage.make("texts")
    texts = [" both ends ", "  ", "\t", "", None, 'a,"b"\r\nc', "\\"]
    await stage.send("texts", *(row(n, c_string=text) for n, text in enumerate(texts)))
    run(spark, stage.config)
    new = tuple(Column(f"new_{kind}", kind) for kind in TYPES)
    await Datasets(stage.pool).alter(
        "texts", lambda before: replace(before, columns=(*before.columns, *new)), "test"
    )
    names = [column.name for column in (*COLUMNS, *new)]
    with exported(spark, stage.config, "texts", "csv").open("rb") as file:
        (chunk,) = chunks.read(file, "csv", 0)
    assert list(chunk.columns) == names and list(chunk.columns["c_string"]) == [
        pa.scalar(text, pa.string()) for text in texts
    ]
    schema = pq.read_schema(exported(spark, stage.config, "texts", "parquet"))
    assert schema.names == names
    assert [schema.field(f"new_{kind}").type for kind in TYPES] == [
        schema.field(f"c_{kind}").type for kind in TYPES
    ]


def test_another_databases_checkpoint_is_refused(
    spark: SparkSession, config: PipelineConfig
) -> None:
    epoch = batches.head(config.database_url).epoch
    Checkpoint.open(config.checkpoint / STAGED, STAGED, Position(epoch, 5))
    with pytest.raises(CheckpointMismatch, match="stands at batch 5"):
        staged_writer(spark, config)


async def test_datasets_on_s3(
    spark: SparkSession, config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with moto() as s3:
        for name, text in s3.environment("S3_T").items():
            monkeypatch.setenv(name, text)
        place = {"s3_endpoint": s3.url, "s3_credentials": "env:S3_T"}
        root = f"s3://{s3.bucket}/lake"
        options = Settings(timestore=TimestoreSettings(root=root, **place)).tables_options()
        remote = replace(config, tables_root=root, tables_options=options)
        async with staging(remote, **place) as stage:
            await stage.make("far", "hour")
            await stage.send("far", row(1), row(2, "2026-11-15T11:00:00Z"))
            await stage.send("far", row(3, extra="x"))
            run(spark, remote)
            table = await stage.table("far")
            assert numbers(table) == [1, 2, 3]
            assert sorted(filter(None, table["extra"].to_pylist())) == ["x"]
            assert staged_sweep.sweep(replace(remote, staged_keep_seconds=-60)) == 2
