"""Filestore events become rows of activity and growth, each once, whatever happened before."""

from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.filestore_story import NODE, story, tell
from tests.pipeline.tables import ask, through
from tristore.errors import CheckpointMismatch
from tristore.pipeline import jobs, log
from tristore.pipeline.session import PipelineConfig


def test_the_sum_of_deltas_is_what_lies_on_each_mount(
    spark: SparkSession, config: PipelineConfig
) -> None:
    story(config.database_url)
    jobs.run_available(config, spark)

    found = ask(
        config.tables,
        "SELECT sequence, ordinal, mount, path, folder, size_delta, command, duration_ms, outcome"
        " FROM filestore_activity ORDER BY sequence, ordinal",
    )
    assert found == [
        [1, 0, "m", "in/f", "in", 10, "put", None, None],
        [2, 0, "m", "old/2", "old", 2, "import", None, None],
        [2, 1, "m", "old/3", "old", 3, "import", None, None],
        [3, 0, "n", "f", "f", 10, "move", None, None],
        [3, 1, "m", "in/f", "in", -10, "move", None, None],
        [4, 0, "m", "in/f", "in", None, "move", 7, "completed"],
    ]
    assert through(config.tables, "filestore_activity") == 4
    total = "SELECT mount, prefix, sum(net_bytes), sum(moved) FROM filestore_growth GROUP BY ALL"
    growth = ask(config.tables, f"{total} ORDER BY ALL")
    assert [[row[0], row[1], int(row[2]), int(row[3])] for row in growth] == [
        ["m", "", 5, 1],
        ["m", "in", 0, 1],
        ["m", "old", 5, 0],
        ["n", "", 10, 1],
    ]


def test_tables_that_were_not_fed_catch_up_when_they_are(
    spark: SparkSession, config: PipelineConfig
) -> None:
    off = replace(config, filestore_sync=False)
    log_rows.append(config.database_url, 20)
    jobs.run_available(off, spark)
    story(config.database_url)
    jobs.run_available(off, spark)
    assert not DeltaTable.is_deltatable(f"{config.tables_root}/filestore_activity")

    # Two of the story's events are gone from the log: only the archive still has them.
    cut = "DELETE FROM bus.workflow_events WHERE ingress_sequence <= 22"
    log_rows.execute(config.database_url, cut)
    log_rows.execute(config.database_url, "UPDATE bus.ingress_head SET earliest = 23")
    jobs.run_available(config, spark)
    tell(config.database_url, ("node.deleted", {**NODE, "path": "f", "mount": "n"} | _gone()))
    jobs.run_available(config, spark)
    counts = "SELECT count(*), count(DISTINCT (event_id, ordinal)), sum(size_delta)"
    found = ask(config.tables, f"{counts} FROM filestore_activity")
    assert [int(cell) for cell in found[0]] == [7, 7, 5]
    assert through(config.tables, "filestore_activity") == 25


def _gone() -> dict[str, Any]:
    return {"sizeBytes": 10, "sizeDelta": -10, "state": "deleted", "command": "delete"}


@pytest.mark.parametrize(
    ("size", "found"),
    [(10, 10), (10.0, 10), (-7, -7), (1e30, None), (2**60, None), ("ten", None), ({}, None)],
)
def test_an_event_with_any_number_in_it_is_a_row_and_stops_nobody(
    database_url: str, size: object, found: int | None
) -> None:
    numbers = dict.fromkeys(("sizeBytes", "sizeDelta", "durationMs", "journalId"), size)
    tell(database_url, ("thing.happened", {"kind": "file", **numbers}))
    rows = [row for batch in log.read_activity(database_url, 0, 1) for row in batch.to_pylist()]
    names = ("size_bytes", "size_delta", "duration_ms", "journal_id")
    assert [[row[name] for name in names] for row in rows] == [[found] * 4]


def test_rows_that_the_log_lost_while_they_were_read_are_not_left_out(database_url: str) -> None:
    story(database_url)
    reading = log.read_activity(database_url, 0, 4)
    log_rows.execute(database_url, "DELETE FROM bus.workflow_events WHERE ingress_sequence < 3")
    log_rows.execute(database_url, "UPDATE bus.ingress_head SET earliest = 3")
    with pytest.raises(CheckpointMismatch, match="was cut to 3"):
        list(reading)
    assert sum(batch.num_rows for batch in log.read_activity(database_url, 2, 4)) == 3
