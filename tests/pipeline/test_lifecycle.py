"""Partitions close once a revision, tables stay small, and every row stays there once."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.pipeline import log_rows
from tests.pipeline.micro_batches import catch_up, fill
from tristore import failpoints
from tristore.cli import app
from tristore.pipeline import actions, requests
from tristore.pipeline.catalogue import find, table_of
from tristore.pipeline.closing import close_due, observe
from tristore.pipeline.compaction import compact, crowd
from tristore.pipeline.contents import TableFile, contents
from tristore.pipeline.lifecycle import Lifecycle
from tristore.pipeline.retention import overdue, retain
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.tools import Tools
from tristore.pipeline.upkeep import Upkeep
from tristore.pipeline.vacuum import vacuum, vacuum_deleted
from tristore.timestore.retention import Retention

NOW = datetime(2026, 11, 15, tzinfo=UTC)
OUTBOX = "SELECT envelope::jsonb->'payload' FROM bus.outbox ORDER BY id"
PARTITIONS = (
    "SELECT state, revision, rows, files FROM timestore.partitions WHERE dataset = 'events'"
)


@pytest.fixture
def tools(spark: SparkSession, config: PipelineConfig) -> Tools:
    failpoints.arm("")
    return Tools(spark, replace(config, upkeep=Upkeep(compact_files=4)))


def rows_of(tools: Tools, slug: str) -> list[dict[str, Any]]:
    handle = table_of(tools.config, find(tools.config, slug)).place.table()
    found: list[dict[str, Any]] = pa.table(handle.to_pyarrow_table()).to_pylist()
    return found


def sequences(tools: Tools) -> list[int]:
    return sorted(row["ingress_sequence"] for row in rows_of(tools, "events"))


def files_of(tools: Tools, slug: str = "events") -> int:
    dataset = find(tools.config, slug)
    handle = table_of(tools.config, dataset).place.table()
    return sum(map(len, contents(handle, dataset.partition_column).values()))


def told(tools: Tools) -> list[tuple[str, int, int]]:
    found: list[Any] = [row[0] for row in log_rows.fetch(tools.config.database_url, OUTBOX)]
    return [(each["partition"], each["revision"], each["rows"]) for each in found]


def close_all(tools: Tools) -> list[str]:
    return close_due(tools, find(tools.config, "events"), NOW)


def test_a_round_closes_what_has_ended_and_late_rows_give_it_another_revision(
    tools: Tools,
) -> None:
    fill(tools, 4, 200)
    lifecycle = Lifecycle(tools.spark, tools.config)
    lifecycle.step()
    lifecycle.step()

    listed = log_rows.fetch(tools.config.database_url, f"{PARTITIONS} ORDER BY partition")
    assert listed == [("closed", 1, 599, 1), ("closed", 1, 201, 1)]
    assert told(tools) == [("2026-03-01", 0, 599), ("2026-03-02", 0, 201)]
    assert sequences(tools) == list(range(1, 801))
    times = [row["occurred_at"] for row in rows_of(tools, "events") if row["day"] == "2026-03-01"]
    assert times == sorted(times)

    fill(tools, 1, 10)
    lifecycle.step()
    assert told(tools)[2:] == [("2026-03-02", 1, 211)]
    assert sequences(tools) == list(range(1, 811))


def test_nothing_closes_before_the_table_holds_what_the_log_held(tools: Tools) -> None:
    fill(tools, 1, 10)
    log_rows.append(tools.config.database_url, 10)
    lifecycle = Lifecycle(tools.spark, tools.config)
    lifecycle.step()
    assert told(tools) == []
    catch_up(tools, "events", 10)
    lifecycle.step()
    assert told(tools) == [("2026-03-01", 0, 20)]


@pytest.mark.parametrize(
    "point", ["before_write", "after_write", "after_delta_commit", "after_postgres"]
)
def test_a_close_that_dies_anywhere_is_told_once_and_keeps_every_row(
    tools: Tools, point: str
) -> None:
    fill(tools)
    failpoints.arm(f"closing.{point}:raise:1")
    with pytest.raises(RuntimeError):
        close_all(tools)
    failpoints.arm("")
    close_all(tools)
    close_all(tools)
    assert told(tools) == [("2026-03-01", 0, 300)]
    assert (sequences(tools), files_of(tools)) == (list(range(1, 301)), 1)


def test_a_partition_closed_beside_one_that_was_sorted_before_is_told_once(tools: Tools) -> None:
    fill(tools, 2, 400)
    failpoints.arm("closing.after_delta_commit:raise:2")
    with pytest.raises(RuntimeError):
        close_all(tools)  # the second day is sorted and not told of
    failpoints.arm("")
    first, second = told(tools), ("2026-03-02", 0, 201)
    assert first == [("2026-03-01", 0, 599)]
    late(tools)
    assert close_all(tools) == ["2026-03-01", "2026-03-02"]
    assert close_all(tools) == []
    assert told(tools) == [*first, ("2026-03-01", 1, 600), second]


def late(tools: Tools) -> None:
    """A row of the first day."""
    url = tools.config.database_url
    log_rows.append(url, 1)
    log_rows.execute(
        url,
        "UPDATE bus.workflow_events SET occurred_at = '2026-03-01T23:00Z'"
        " WHERE ingress_sequence = (SELECT last FROM bus.ingress_head)",
    )
    catch_up(tools, "events", 1)


def test_late_rows_that_a_compaction_sorted_in_give_another_revision(tools: Tools) -> None:
    fill(tools, 1, 300)
    assert close_all(tools) == ["2026-03-01"]
    late(tools)
    assert compact(tools, find(tools.config, "events"), wholly=True) == 1
    assert close_all(tools) == ["2026-03-01"]
    assert close_all(tools) == []
    assert told(tools) == [("2026-03-01", 0, 300), ("2026-03-01", 1, 301)]


def test_compaction_merges_small_files_while_the_stream_appends(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tools, 6, 10)
    events = find(tools.config, "events")
    before = table_of(tools.config, events).place.table()
    failpoints.arm("compaction.after_write:raise:1")
    with pytest.raises(RuntimeError):
        compact(tools, events)
    failpoints.arm("")
    assert (files_of(tools), len(sequences(tools))) == (6, 60)

    before_its_commit(monkeypatch, lambda: fill(tools, 1, 10))
    assert compact(tools, events) == 1
    assert sequences(tools) == list(range(1, 71))
    assert files_of(tools) == 2
    assert before.to_pyarrow_table().num_rows == 60  # a reader that began earlier


def test_of_two_rewrites_of_the_same_files_one_counts(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tools, 6, 10)
    events = find(tools.config, "events")
    before_its_commit(monkeypatch, lambda: compact(tools, events))
    assert compact(tools, events) == 0
    assert (sequences(tools), files_of(tools)) == (list(range(1, 61)), 1)


def before_its_commit(monkeypatch: pytest.MonkeyPatch, step: Callable[[], object]) -> None:
    """What another does after a compaction has read and before it commits."""
    monkeypatch.setitem(failpoints._ACTIONS, "skip", lambda _: step())
    failpoints.arm("compaction.after_write:skip:1")


def test_a_large_file_is_not_rewritten_for_a_few_small_ones() -> None:
    sizes = [2**20] * 3 + [50 * 2**20, 200 * 2**20]
    files = [TableFile(f"data/{n}/x", size, 1, "p") for n, size in enumerate(sizes)]
    assert [file.size for file in crowd(files, 128 * 2**20)] == [2**20] * 3


def test_retention_lets_whole_partitions_go_and_a_reader_keeps_its_version(tools: Tools) -> None:
    fill(tools, 2, 400)
    events = replace(find(tools.config, "events"), retention=Retention("257d"))
    reader = table_of(tools.config, events).place.table()
    close_all(tools)
    failpoints.arm("retention.after_delta_commit:raise:1")
    with pytest.raises(RuntimeError):
        retain(tools, events, datetime(2026, 11, 14, tzinfo=UTC))
    failpoints.arm("")
    assert retain(tools, events, datetime(2026, 11, 14, tzinfo=UTC)) == []
    close_all(tools)
    assert {row["day"] for row in rows_of(tools, "events")} == {"2026-03-02"}
    states = log_rows.fetch(tools.config.database_url, f"{PARTITIONS} ORDER BY partition")
    assert [row[0] for row in states] == ["removed", "closed"]

    assert vacuum(tools, events) == 0
    assert reader.to_pyarrow_table().num_rows == 800
    assert vacuum(tools, events, keep_hours=0) > 0
    assert len(sequences(tools)) == 201
    assert table_of(tools.config, events).through() == 800


def test_the_oldest_partitions_go_until_the_rest_fits() -> None:
    found = {
        day: [TableFile(f"data/{day}/x", 10, 1, day)]
        for day in ("2026-11-11", "2026-11-12", "2026-11-13", "2026-11-14")
    }
    assert overdue(Retention(None, 25), found, NOW) == ["2026-11-11", "2026-11-12"]
    assert overdue(Retention(None, 1), found, NOW) == list(found)[:3]
    assert overdue(Retention("2d"), found, NOW) == ["2026-11-11", "2026-11-12"]
    assert overdue(Retention(), found, NOW) == []


DATASET = """
    INSERT INTO timestore.datasets
        (slug, time_column, granularity, schema, folder, created_by, updated_by)
    VALUES ('w', 'at', 'hour', '[{"name": "at", "type": "timestamp"},
        {"name": "n", "type": "long"}]', 'w-0123abcd', 't', 't')
"""
STAGED = """
    INSERT INTO timestore.ingest_batches
        (id, dataset, file, format, rows, bytes, schema_version)
    VALUES (1, 'w', 'f', 'json', 1, 1, 1)
"""


def test_a_users_dataset_closes_when_all_that_was_staged_is_in_it(tools: Tools) -> None:
    url = tools.config.database_url
    log_rows.execute(url, DATASET)
    log_rows.execute(url, STAGED)
    log_rows.execute(url, "UPDATE timestore.ingest_head SET last = 1")
    folder = Path(tools.config.tables_root) / "w-0123abcd"
    for hour in (10, 11, 10):
        put(tools, folder.name, hour)
    lifecycle = Lifecycle(tools.spark, tools.config)
    lifecycle.step()
    assert told(tools) == []
    log_rows.execute(url, "UPDATE timestore.ingest_batches SET state = 'committed'")
    lifecycle.step()
    assert told(tools) == [("2026-03-01T10", 0, 2), ("2026-03-01T11", 0, 1)]
    assert [row["n"] for row in rows_of(tools, "w")] == [1, 1, 1]

    assert vacuum_deleted(tools, keep_hours=0) == 0
    log_rows.execute(url, "UPDATE timestore.datasets SET status = 'deleted' WHERE slug = 'w'")
    assert vacuum_deleted(tools) == 0
    assert vacuum_deleted(tools, keep_hours=0) == 1
    assert not folder.exists()


def test_a_dataset_made_anew_is_looked_after_like_any_other(tools: Tools) -> None:
    url = tools.config.database_url
    log_rows.execute(url, DATASET)
    lifecycle = Lifecycle(tools.spark, tools.config)
    put(tools, "w-0123abcd", 10)
    old = find(tools.config, "w")
    for _ in range(3):
        lifecycle.step()
    assert told(tools) == [("2026-03-01T10", 0, 1)]

    log_rows.execute(url, "DELETE FROM timestore.partitions")
    log_rows.execute(url, "UPDATE timestore.datasets SET folder = 'w-4567cdef' WHERE slug = 'w'")
    # Whoever still looks after the old one tells nothing more of it.
    observe(tools, old, table_of(tools.config, old).place.table())
    assert close_due(tools, old, NOW) == []
    while table_of(tools.config, old).place.table().version() > put(tools, "w-4567cdef", 11):
        pass
    lifecycle.step()
    assert [one[:2] for one in told(tools)[1:]] == [("2026-03-01T11", 0)]


def put(tools: Tools, folder: str, hour: int) -> int:
    """A row of that hour; the version it came with."""
    at = datetime(2026, 3, 1, hour, 30, tzinfo=UTC)
    rows = {"at": [at], "n": [1], "_partition": [f"2026-03-01T{hour}"]}
    place = Path(tools.config.tables_root) / folder
    write_deltalake(place, pa.table(rows), mode="append", partition_by=["_partition"])
    return DeltaTable(place).version()


def test_what_an_operator_asks_for_is_done_by_the_driver_and_answered(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tools, 3, 10)
    monkeypatch.setenv("TRISTORE_DATABASE_URL", tools.config.database_url)
    monkeypatch.setenv("TRISTORE_TIMESTORE__ROOT", tools.config.tables_root)
    with driven(tools):
        # A round looks at tables first: by the time it comes to requests, all is closed.
        assert ask("compact", "--dataset", "events") == {"events": 0}
        given = ("--dataset", "events", "--partition", "2026-03-01")
        assert ask("close", *given) == {"events": []}
        assert ask("backfill", "--from-sequence", "3", "--dataset", "events") == {"events": 0}
        assert ask("vacuum", "--dataset", "events") == {"events": 0}
        refused = CliRunner().invoke(app, ["pipeline", "close", "--dataset", "nothing"])
        assert "there is no dataset 'nothing'" in str(refused.exception)
        found = ask("export", "events", "--format", "csv", "--target", "mine")
        assert (found["state"], found["rows"]) == ("completed", 30)
    (events, *_) = ask("status")["datasets"]
    shown = {name: events[name] for name in ("dataset", "rows", "files", "lag", "closed")}
    assert shown == {"dataset": "events", "rows": 30, "files": 1, "lag": 0, "closed": 1}


def test_what_a_stop_cuts_off_is_begun_again_by_the_next_driver(
    config: PipelineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, number = threading.Event(), requests.ask(config.database_url, "compact", {})

    def cut_off(*_: object) -> None:
        stop.set()
        raise RuntimeError("the session is closed")

    monkeypatch.setattr(actions, "act", cut_off)
    quick = replace(config, upkeep=Upkeep(seconds=0.05))
    Lifecycle(None, quick).run(stop)  # type: ignore[arg-type]
    assert requests.state(config.database_url, number).state == "running"
    requests.resume(config.database_url)
    assert requests.take(config.database_url) is not None


def ask(*words: str) -> Any:
    answer = CliRunner().invoke(app, ["pipeline", *words, "--json"])
    assert answer.exit_code == 0, (answer.output, answer.exception)
    return json.loads(answer.stdout)


@contextmanager
def driven(tools: Tools) -> Iterator[None]:
    stop = threading.Event()
    quick = replace(tools.config, upkeep=Upkeep(seconds=0.05))
    lifecycle = Lifecycle(tools.spark, quick)
    thread = threading.Thread(target=lifecycle.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
