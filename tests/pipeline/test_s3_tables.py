"""Tables on S3: written by tasks, committed by condition, each event once over a killed driver."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.pipeline import driver, log_rows
from tests.pipeline.filestore_story import story
from tests.support.s3 import S3Server, rclone
from tests.support.s3_tables import own_place
from tristore.config import Settings, TimestoreSettings
from tristore.errors import StartRefused
from tristore.pipeline import jobs, reach, s3_files
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.place import Place, tables_place

# A driver is a process with a JVM of its own: on a busy machine it takes its time to start.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def tables(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Place:
    return own_place(server, monkeypatch)


def test_a_driver_killed_between_two_commits_leaves_each_event_once(
    spark: SparkSession, config: PipelineConfig, tables: Place
) -> None:
    config = replace(config, tables_root=tables.uri, tables_options=tables.options)
    log_rows.append(config.database_url, 300)
    story(config.database_url)
    with driver.running(config, "pipeline.after_delta_commit:exit9:1") as process:
        assert process.wait(240) == -signal.SIGKILL
    assert jobs.status(config)["rows"] == 304
    assert tables.child("filestore_activity").table().count() == 0

    log_rows.append(config.database_url, 200)
    jobs.run_available(config, spark)
    assert rows(tables, "events", "id") == [f"event-{n}" for n in range(1, 301)] + [
        *(f"e{n}" for n in range(301, 305)),
        *(f"event-{n}" for n in range(305, 505)),
    ]
    assert rows(tables, "filestore_activity", "ordinal") == [0, 0, 1, 0, 1, 0]
    growth = tables.child("filestore_growth").table().to_pyarrow_table().to_pylist()
    found = {(row["mount"], row["prefix"], row["month"]): row["net_bytes"] for row in growth}
    months = {"2026-03"}
    assert {month for _, _, month in found} == months
    assert {key[:2]: net for key, net in found.items() if not key[1]} == {
        ("m", ""): 5,
        ("n", ""): 10,
    }


def rows(tables: Place, name: str, column: str) -> list[object]:
    order = {"events": "ingress_sequence", "filestore_activity": "sequence"}[name]
    found = tables.child(name).table().to_pyarrow_table()
    return found.sort_by([(order, "ascending"), (column, "ascending")])[column].to_pylist()


def test_a_store_that_ignores_conditions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rclone(tmp_path / "served") as server, pytest.raises(StartRefused, match="If-None-Match"):
        reach.refuse_store_without_conditions(own_place(server, monkeypatch))


def test_keys_that_are_not_there_are_named(server: S3Server) -> None:
    given = TimestoreSettings(root="s3://bucket/tables", s3_credentials="env:ABSENT_KEYS")
    with pytest.raises(StartRefused, match="ABSENT_KEYS_ACCESS_KEY_ID"):
        tables_place(Settings(timestore=given))


def test_a_task_with_many_partitions_keeps_few_files_open(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = own_place(server, monkeypatch)
    monkeypatch.setattr(s3_files, "_MOST_OPEN", 3)
    schema = pa.schema([("n", pa.int64()), ("day", pa.string())])
    task = s3_files.Task(place.uri, place.options, "data/x", "day", bytes(schema.serialize()))
    rows = {"n": range(20), "day": [f"2026-03-{n % 10 + 10}" for n in range(20)]}
    (answer,) = task(iter(pa.table(rows, schema=schema).to_batches(max_chunksize=10)))
    found = [json.loads(text) for text in answer["found"].to_pylist()]
    assert sum(one["stats"]["numRecords"] for one in found) == 20
    assert len({one["partition"]["day"] for one in found}) == 10
    assert len({one["path"] for one in found}) == len(found) == 20
