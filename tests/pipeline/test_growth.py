"""Growth as partial sums: what each folder got and gave, told from rows of activity."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tristore.pipeline import log
from tristore.pipeline.growth import SUMS, growth, merged
from tristore.timestore.growth_tail import tail_sql

AT = datetime(2026, 3, 1, 10, 59, 59, tzinfo=UTC)
CREATED, UPDATED = "filestore.node.created", "filestore.node.updated"
DELETED, MOVED = "filestore.node.deleted", "filestore.node.moved"


def rows(spark: SparkSession, *told: dict[str, Any]) -> DataFrame:
    fields = [field.split()[0] for field in log.ACTIVITY_SCHEMA.split(", ")]
    plain = {"occurred_at": AT, "mount": "m", "kind": "file", "state": "active"}
    filled = [tuple(({**plain, **row}).get(name) for name in fields) for row in told]
    return spark.createDataFrame(filled, log.ACTIVITY_SCHEMA)


def change(type: str, path: str, delta: int, size: int, **more: Any) -> dict[str, Any]:
    return {"type": type, "path": path, "size_delta": delta, "size_bytes": size, **more}


def sums(frame: DataFrame) -> dict[str, tuple[int | None, ...]]:
    return {row.prefix: tuple(row[name] for name in SUMS) for row in frame.collect()}


def test_every_folder_on_the_way_gets_its_share_down_to_the_depth(spark: SparkSession) -> None:
    told = [
        change(CREATED, "a/b/c/f", 10, 10),
        change(UPDATED, "a/b/c/f", -4, 6),
        change(CREATED, "top", 5, 5),
        change(DELETED, "a/b/c/f", -6, 6),
        change(CREATED, "a", 0, 0, kind="directory"),
        {"type": "filestore.command.completed", "path": "top", "kind": None, "size_bytes": 5},
    ]
    assert sums(growth(rows(spark, *told), 2)) == {
        "": (15, 10, 5, 2, 1, 1, 0),
        "a": (10, 10, 0, 1, 1, 1, 0),
        "a/b": (10, 10, 0, 1, 1, 1, 0),
    }


def test_a_move_inside_a_mount_takes_bytes_from_the_folders_it_leaves(spark: SparkSession) -> None:
    told = [change(MOVED, "a/new/f", 0, 7, previous_path="a/old/f")]
    assert sums(growth(rows(spark, *told), 2)) == {
        "": (0, 0, 0, 0, 0, 0, 1),
        "a": (0, 0, 0, 0, 0, 0, 1),
        "a/new": (7, 0, 7, 0, 0, 0, 1),
        "a/old": (0, 7, -7, 0, 0, 0, 1),
    }


def test_what_no_sum_can_hold_stops_nobody(spark: SparkSession) -> None:
    told = [change(CREATED, f"a/{n}", 2**62, 2**62) for n in range(2)]
    found = sums(growth(rows(spark, *told, change(CREATED, "b/f", 1, 1)), 1))
    assert (found["a"][0], found["a"][3], found["b"][0]) == (None, 2, 1)


def test_reconciliations_count_by_their_outcome(spark: SparkSession) -> None:
    reconciled = "filestore.node.reconciled"
    told = [
        change(reconciled, "f", 3, 3, outcome="created"),
        change(reconciled, "f", 1, 4, outcome="updated"),
        change("filestore.node.missing", "f", -4, 4, outcome="missing"),
        change(reconciled, "f", 4, 4, outcome="restored"),
        change(reconciled, "f", 0, 4, outcome="unchanged"),
    ]
    assert sums(growth(rows(spark, *told), 0)) == {"": (8, 4, 4, 2, 1, 1, 0)}


def test_hours_and_mounts_are_kept_apart_and_partial_sums_merge(spark: SparkSession) -> None:
    later = AT.replace(hour=11)
    told = [
        change(CREATED, "f", 1, 1),
        change(CREATED, "g", 2, 2, occurred_at=later),
        change(CREATED, "h", 4, 4, mount="other"),
    ]
    once = growth(rows(spark, *told), 1)
    twice = merged(once.unionByName(once)).collect()
    found = {(row.hour.replace(tzinfo=UTC), row.mount): row.bytes_in for row in twice}
    assert found == {
        (AT.replace(minute=0, second=0), "m"): 2,
        (later.replace(minute=0, second=0), "m"): 4,
        (AT.replace(minute=0, second=0), "other"): 8,
    }
    assert {row.month for row in twice} == {"2026-03"}


@pytest.mark.parametrize("depth", [0, 2, 5])
def test_the_tail_of_a_query_is_summed_as_the_table_is(spark: SparkSession, depth: int) -> None:
    """Spark sums what is in the table, DuckDB what is not there yet: one rule, told twice."""
    told = some_changes(random.Random(depth), 300)
    frame = rows(spark, *told)
    summed = growth(frame, depth).collect()

    given = {name: [row.get(name) for row in told] for name in told[0]}
    given["occurred_at"] = pa.array(given["occurred_at"], pa.timestamp("us", "UTC"))
    with duckdb.connect() as conn:
        conn.execute("SET TimeZone = 'UTC'")
        conn.register("tail", pa.table(given))
        result = conn.execute(tail_sql("tail", depth))
        names = [column[0] for column in result.description or ()]
        found = result.fetchall()
    assert names == growth(frame, depth).columns
    as_rows = [(row.hour.replace(tzinfo=UTC), *tuple(row)[1:]) for row in summed]
    assert sorted(found) == sorted(as_rows)


KINDS = (CREATED, UPDATED, DELETED, MOVED, "filestore.nodes.imported", "filestore.node.reconciled")


def some_changes(chance: random.Random, count: int) -> list[dict[str, Any]]:
    def path() -> str:
        folders = [chance.choice(["a", "b", "c d"]) for _ in range(chance.randrange(5))]
        return "/".join([*folders, f"f{chance.randrange(5)}"])

    def one(number: int) -> dict[str, Any]:
        kind, size = chance.choice(KINDS), chance.randrange(1000)
        inside = kind == MOVED and chance.random() < 0.7
        return change(kind, path(), 0 if inside else chance.choice((size, -size)), size) | {
            "occurred_at": AT + timedelta(minutes=number),
            "mount": chance.choice("mn"),
            "kind": chance.choice(("file", "file", "directory")),
            "previous_path": path() if inside else None,
            "outcome": chance.choice(("created", "updated", "restored", "unchanged")),
        }

    return [one(number) for number in range(count)]
