"""Exports hold exactly the rows they were asked for, are shown whole, and are told of once."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import obstore
import pyarrow.csv as pc
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.micro_batches import append, fill
from tests.support.s3 import S3Server
from tests.support.s3_tables import own_place
from tristore import failpoints
from tristore.errors import AlreadyExists, InvalidRequest, NotFound
from tristore.pipeline import exporting, exports, log
from tristore.pipeline.catalogue import find, table_of
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.closing import close_due
from tristore.pipeline.lifecycle import Lifecycle
from tristore.pipeline.s3_files import store
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.tools import Tools

OUTBOX = "SELECT envelope::jsonb->'payload' FROM bus.outbox ORDER BY id"
MIDNIGHT = "2026-03-02T00:00:00+00:00"
ALL = list(range(1, 801))


@pytest.fixture
def tools(spark: SparkSession, config: PipelineConfig) -> Tools:
    failpoints.arm("")
    return Tools(spark, config)


def told(tools: Tools) -> list[dict[str, Any]]:
    rows: list[Any] = log_rows.fetch(tools.config.database_url, OUTBOX)
    return [row[0] for row in rows if "exportId" in row[0]]


def run(tools: Tools, format: str, **bounds: str) -> Path:
    given = (bounds.get("start"), bounds.get("end"))
    number = exports.queue(tools.config.database_url, "events", format, None, given)
    export = exports.claim(tools.config.database_url, number)
    assert export is not None
    exporting.run(tools, export)
    root = exporting.exports_place(tools.config).local
    assert root is not None
    return root / export.target


def test_every_format_holds_the_rows_of_its_range(tools: Tools) -> None:
    fill(tools, 2, 400)
    parquet = ds.dataset(run(tools, "parquet"), partitioning=None).to_table()
    assert sorted(parquet["ingress_sequence"].to_pylist()) == ALL
    late = run(tools, "csv", start=MIDNIGHT)
    found = [pc.read_csv(file) for file in late.rglob("*.csv")]
    rows = [row for table in found for row in table.to_pylist()]
    assert sorted(row["ingress_sequence"] for row in rows) == list(range(600, 801))
    assert rows[0]["occurred_at"].tzinfo is not None
    copied = DeltaTable(run(tools, "delta", end=MIDNIGHT)).to_pyarrow_table()
    assert sorted(copied["ingress_sequence"].to_pylist()) == list(range(1, 600))
    counts = [(one["format"], one["rows"], one["files"]) for one in told(tools)]
    assert counts == [("parquet", 800, 2), ("csv", 201, 1), ("delta", 599, 1)]
    assert not list(late.parent.glob(".*"))


def test_an_export_that_dies_anywhere_is_whole_in_the_end_and_told_once(tools: Tools) -> None:
    fill(tools, 1, 50)
    number = exports.queue(tools.config.database_url, "events", "parquet", "mine", (None, None))
    root = exporting.exports_place(tools.config).local
    assert root is not None
    lifecycle = Lifecycle(tools.spark, tools.config)
    for point in ("after_write", "after_rename"):
        failpoints.arm(f"exporting.{point}:raise:1")
        lifecycle.step()
        assert exports.state(tools.config.database_url, number)["state"] == "queued"
        assert (root / "mine").exists() is (point == "after_rename")
    failpoints.arm("exporting.after_postgres:raise:1")
    lifecycle.step()
    failpoints.arm("")
    lifecycle.step()
    rows = ds.dataset(root / "mine", partitioning=None).to_table()
    assert sorted(rows["ingress_sequence"].to_pylist()) == list(range(1, 51))
    (event,) = told(tools)
    assert (event["target"], event["rows"]) == ("exports/mine", 50)
    found = exports.state(tools.config.database_url, number)
    assert (found["state"], found["progress"]) == ("completed", {"partsDone": 1, "partsTotal": 1})


def test_an_export_that_stopping_drivers_cut_off_does_not_fail(tools: Tools) -> None:
    fill(tools, 1, 10)
    url = tools.config.database_url
    number = exports.queue(url, "events", "parquet", "cut", (None, None))
    for _ in range(4):
        export = exports.claim(url, number)
        assert export is not None
        failpoints.arm("exporting.after_write:raise:1")
        assert not exporting.run(tools, export, stopping=lambda: True)
        exports.resume(url)
    assert exports.state(url, number)["state"] == "queued"


def test_an_export_waits_for_what_was_there_when_it_was_asked_for(tools: Tools) -> None:
    fill(tools, 1, 10)
    log_rows.append(tools.config.database_url, 10)
    number = exports.queue(tools.config.database_url, "events", "csv", None, (None, None))
    lifecycle = Lifecycle(tools.spark, tools.config)
    lifecycle.step()
    assert exports.state(tools.config.database_url, number)["state"] == "queued"
    table = table_of(tools.config, find(tools.config, "events"))
    append(tools, table, Span(log.head(tools.config.database_url).epoch, 10, 20))
    lifecycle.step()
    lifecycle.step()
    assert exports.state(tools.config.database_url, number)["rows"] == 20


def test_what_cannot_be_exported_is_refused_with_the_reason(tools: Tools) -> None:
    url = tools.config.database_url
    with pytest.raises(NotFound):
        exports.queue(url, "nothing", "csv", None, (None, None))
    with pytest.raises(InvalidRequest):
        exports.queue(url, "events", "xml", None, (None, None))
    with pytest.raises(InvalidRequest):
        exports.queue(url, "events", "csv", "../up", (None, None))
    number = exports.queue(url, "events", "csv", "taken", (None, None))
    with pytest.raises(AlreadyExists):
        exports.queue(url, "events", "csv", "taken", (None, None))
    Lifecycle(tools.spark, tools.config).step()
    found = exports.state(url, number)
    assert (found["state"], "no rows yet" in str(found["error"])) == ("failed", True)

    log_rows.append(url, 10)
    early = exports.queue(url, "events", "csv", "early", (None, None))
    Lifecycle(tools.spark, tools.config).step()
    assert exports.state(url, early)["state"] == "queued", "its table has yet to begin"


@pytest.fixture
def on_s3(tools: Tools, server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """80 events in a table on S3."""
    fill(tools, 2, 40)
    place = own_place(server, monkeypatch)
    folder = table_of(tools.config, find(tools.config, "events")).place.local
    there = replace(tools.config, tables_root=place.uri, tables_options=dict(place.options))
    assert folder is not None
    upload(folder, there)
    return Tools(tools.spark, there)


def carry_out(tools: Tools, format: str, target: str | None = None) -> bool:
    url = tools.config.database_url
    export = exports.claim(url, exports.queue(url, "events", format, target, (None, None)))
    assert export is not None
    return exporting.run(tools, export)


def test_on_s3_partitions_close_and_exports_end_as_in_a_folder(on_s3: Tools) -> None:
    config = on_s3.config
    assert close_due(on_s3, find(config, "events"), datetime(2026, 11, 15, tzinfo=UTC)) == [
        "2026-03-01"
    ]
    handle = table_of(config, find(config, "events")).place.table()
    assert (handle.count(), len(handle.file_uris())) == (80, 1)
    for format in ("parquet", "csv", "delta"):
        assert carry_out(on_s3, format)
    assert [(one["format"], one["rows"], one["files"]) for one in told(on_s3)] == [
        ("parquet", 80, 1),
        ("csv", 80, 1),
        ("delta", 80, 1),
    ]
    assert told(on_s3)[0]["target"].startswith(f"{config.tables_root}/_exports/")
    assert copied(on_s3) == 80


def copied(tools: Tools) -> int:
    """Rows of the Delta copy that was told of last."""
    target = str(told(tools)[-1]["target"])
    return DeltaTable(target, storage_options=dict(tools.config.tables_options)).count()


def test_on_s3_an_export_that_died_is_written_anew(on_s3: Tools) -> None:
    bucket = store(on_s3.config.tables_root, on_s3.config.tables_options)

    def objects(target: str) -> list[str]:
        folder = f"_exports/{target}/" if target else "_exports/"
        found = [item["path"] for page in obstore.list(bucket, folder) for item in page]
        return [path.partition(folder)[2] for path in found]

    for format in ("parquet", "csv", "delta"):
        failpoints.arm("exporting.after_write:raise:1")
        assert not carry_out(on_s3, format, format)
        assert len(objects(format)) > 0
        again = exports.take(on_s3.config.database_url, {"events": datetime.now(UTC)})
        assert again is not None and exporting.run(on_s3, again)
        assert told(on_s3)[-1]["rows"] == 80
    assert copied(on_s3) == 80
    assert sorted(objects("csv")) == ["_export.json", "part-0000/00000.csv"]
    assert sum(path.endswith(".parquet") for path in objects("delta")) == 1

    obstore.put(bucket, "_exports/theirs/file", b"x")
    assert not carry_out(on_s3, "csv", "theirs")
    assert objects("theirs") == ["file"]
    # Nor does an attempt that follows one which never came to look.
    url = on_s3.config.database_url
    number = exports.queue(url, "events", "csv", "theirs", (None, None))
    assert exports.claim(url, number) is not None
    exports.resume(url)
    second = exports.claim(url, number)
    assert second is not None and second.attempts == 2
    assert not exporting.run(on_s3, second)
    assert objects("theirs") == ["file"]
    assert not [path for path in objects("") if path.startswith(".")]


def upload(folder: Path, config: PipelineConfig) -> None:
    bucket = store(config.tables_root, config.tables_options)
    for file in folder.rglob("*"):
        if file.is_file():
            obstore.put(bucket, f"events/{file.relative_to(folder)}", file.read_bytes())
    shutil.rmtree(folder)
