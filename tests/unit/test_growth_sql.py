"""Growth and churn as SQL: every way to tell them agrees with a plain count, at any depth."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tristore.timestore import churn, growth, window
from tristore.timestore.dataset import Dataset
from tristore.timestore.growth import Folder
from tristore.timestore.growth_tail import tail_sql
from tristore.timestore.requests import Query
from tristore.timestore.retention import Retention
from tristore.timestore.tables import ACTIVITY, GROWTH, Tables

BEGIN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
DEPTH = 2
KINDS = {
    "filestore.node.created": "created",
    "filestore.node.copied": "created",
    "filestore.nodes.imported": "created",
    "filestore.node.updated": "updated",
    "filestore.node.deleted": "deleted",
    "filestore.node.missing": "deleted",
    "filestore.node.moved": "moved",
}
COLUMNS = ("mount", "path", "previous_path", "type", "outcome", "kind", "size_bytes", "size_delta")
Row = dict[str, Any]


def history(seed: int, length: int = 400) -> list[Row]:
    """Not a history that could be, but every kind of row, on every level."""
    chance = random.Random(seed)

    def path() -> str:
        folders = [chance.choice("ab") for _ in range(chance.randrange(5))]
        return "/".join([*folders, f"f{chance.randrange(9)}"])

    def row(number: int) -> Row:
        kind, size = chance.choice(list(KINDS)), chance.randrange(1000)
        moved = kind == "filestore.node.moved"
        # A move between mounts has no previous path; one inside a mount changes no size.
        inside = moved and chance.random() < 0.7
        return {
            "occurred_at": BEGIN + timedelta(seconds=number * 31.7),
            "mount": chance.choice(("m", "n", "o")),
            "path": path(),
            "previous_path": path() if inside else None,
            "type": kind,
            "outcome": None,
            "kind": chance.choice(("file", "file", "file", "directory")),
            "size_bytes": size,
            "size_delta": 0 if inside else chance.choice((size, -size, None)),
        }

    return [row(number) for number in range(length)]


def folders(path: str | None) -> set[str]:
    parts = path.split("/")[:-1] if path is not None else None
    return set() if parts is None else {"/".join(parts[:n]) for n in range(len(parts) + 1)}


def counted(rows: list[Row]) -> Iterator[tuple[datetime, str, str, Counter[str]]]:
    """Each row's share of each folder, the plain way."""
    for row in rows:
        if row["kind"] != "file" or row["size_delta"] is None:
            continue
        here, there = folders(row["path"]), folders(row["previous_path"])
        for folder in here | there:
            share = Counter({KINDS[row["type"]]: 1})
            if row["previous_path"] is None:
                share["bytesIn"] = max(row["size_delta"], 0)
                share["bytesOut"] = max(-row["size_delta"], 0)
            elif folder not in there:
                share["bytesIn"] = row["size_bytes"]
            elif folder not in here:
                share["bytesOut"] = row["size_bytes"]
            yield row["occurred_at"], row["mount"], folder, share


class Timestore:
    """The tables as queries see them, without the processes around them."""

    def __init__(self, rows: list[Row]) -> None:
        self._conn = duckdb.connect()
        self._conn.execute("SET TimeZone = 'UTC'")
        times = pa.array([row["occurred_at"] for row in rows], pa.timestamp("us", "UTC"))
        texts = {
            name: pa.array([row[name] for row in rows], pa.int64() if "size" in name else None)
            for name in COLUMNS
        }
        self._conn.register("changes", pa.table({"occurred_at": times, **texts}))
        self._conn.execute("CREATE TABLE all_activity AS SELECT * FROM changes")
        self._conn.execute(f"CREATE TABLE all_growth AS {tail_sql('all_activity', DEPTH)}")

    def ask(self, query: Query) -> list[Row]:
        for source in query.sources:
            after, before = (source.after or BEGIN.replace(year=1), source.before)
            until = before or BEGIN.replace(year=9000)
            self._conn.execute(
                f"CREATE OR REPLACE TEMP TABLE {source.name} AS SELECT * FROM"
                f" all_{source.name.removeprefix('filestore_')}"
                f" WHERE {source.time_column} >= ? AND {source.time_column} < ?",
                [after, until],
            )
        found = self._conn.execute(query.sql, query.parameters)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@cache
def told(seed: int) -> tuple[list[Row], Timestore]:
    """Made once: the tests only ask."""
    rows = history(seed)
    return rows, Timestore(rows)


def tables() -> Tables:
    def dataset(slug: str, time_column: str) -> Dataset:
        folded: dict[str, Any] = {"created_by": "t", "updated_by": "t", "folder": slug}
        folded |= {"read_scope": "timestore:read", "write_scope": "timestore:write"}
        return Dataset(
            slug=slug,
            kind="log",
            time_column=time_column,
            granularity="day",
            columns=(),
            retention=Retention(),
            lateness_seconds=0,
            status="active",
            version=1,
            created_at=BEGIN,
            updated_at=BEGIN,
            **folded,
        )

    return Tables(dataset(ACTIVITY, "occurred_at"), dataset(GROWTH, "hour"), DEPTH)


@pytest.mark.parametrize("bucket", ["1h", "2h", "7m", "90s"])
@pytest.mark.parametrize("prefix", ["", "a", "a/b", "b/a/b", "b/a/b/a"])
@pytest.mark.parametrize("mounts", [["m"], ["m", "n"], None, []])
def test_growth_is_a_plain_count(bucket: str, prefix: str, mounts: list[str] | None) -> None:
    rows, store = told(7)
    end = rows[300]["occurred_at"]
    asked = window.of(rows[120]["occurred_at"], end, bucket, end)
    found = store.ask(growth.query(tables(), Folder(None, mounts, prefix), asked, "json"))

    wanted: dict[int, Counter[str]] = defaultdict(Counter)
    for at, mount, folder, share in counted(rows):
        if folder == prefix and (mounts is None or mount in mounts):
            number = int((at.timestamp() - asked.begin) // asked.width)
            wanted[max(number, -1)].update(share)
    total = wanted[-1]["bytesIn"] - wanted[-1]["bytesOut"]
    assert len(found) == asked.count
    for number, point in enumerate(found):
        counts = wanted[number]
        net = counts["bytesIn"] - counts["bytesOut"]
        total += net
        assert point == {
            "bucket": window.moment(asked.begin + number * asked.width),
            "mount": None,
            "prefix": prefix,
            **{name: counts[name] for name in ("bytesIn", "bytesOut")},
            "netBytes": net,
            **{name: counts[name] for name in ("created", "updated", "deleted", "moved")},
            "totalBytes": total,
        }


@pytest.mark.parametrize("by", ["changes", "bytes"])
@pytest.mark.parametrize("prefix", ["", "a"])
@pytest.mark.parametrize("levels", [1, 2, 3])
@pytest.mark.parametrize("whole", [True, False])
def test_churn_is_a_plain_count(by: churn.By, prefix: str, levels: int, whole: bool) -> None:
    rows, store = told(8)
    begin = datetime(2026, 3, 1, 10, 0 if whole else 13, tzinfo=UTC)
    end = begin + timedelta(hours=1)
    asked = churn.Asked(begin.timestamp(), end.timestamp(), levels, by, limit=3)
    folder = Folder("m", ["m"], prefix)
    found = store.ask(churn.query(tables(), folder, asked, "json"))

    wanted: dict[str, Counter[str]] = defaultdict(Counter)
    for at, mount, name, share in counted(rows):
        depth = len(name.split("/")) if name else 0
        inside = not prefix or name.startswith(f"{prefix}/")
        if begin <= at < end and mount == "m" and inside and depth == folder.depth + levels:
            wanted[name].update(share)
    assert wanted

    def order(name: str) -> tuple[int, int, str]:
        counts = wanted[name]
        amount = counts["bytesIn"] + counts["bytesOut"]
        return (*sorted_by(by, -changes(counts), -amount), name)

    assert [item["prefix"] for item in found] == sorted(wanted, key=order)[:3]
    for item in found:
        counts = wanted[item["prefix"]]
        assert item["changes"] == changes(counts)
        assert item["netBytes"] == counts["bytesIn"] - counts["bytesOut"]


def changes(counts: Counter[str]) -> int:
    return sum(counts[name] for name in ("created", "updated", "deleted", "moved"))


def sorted_by(by: str, changed: int, amount: int) -> tuple[int, int]:
    return (changed, amount) if by == "changes" else (amount, changed)
