"""A commit of a table tells when one bit of what it changes is not as it was written."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import Schema

from tristore.pipeline import rewriting
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.contents import contents
from tristore.pipeline.datafiles import describe
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.table import Batch, Table
from tristore.timestore import commit_digest
from tristore.timestore.place import Place

MEANING = {
    "add": ("path", "size", "partitionValues", "stats"),
    "remove": ("path",),
    "txn": ("appId", "version"),
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table with an appended file, which a second commit replaces by another."""
    rows = pa.table({"n": pa.array([1, 2], pa.int64()), "text": ["a", "ż"]})
    schema = Schema.from_arrow(rows.schema.append(pa.field("day", pa.string())))
    table = Table("events", Place(str(tmp_path / "events")))
    table.create(schema)
    for name in ("one", "two"):
        folder = tmp_path / "events" / "data" / name / "day=2026-03-01"
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "part-0.parquet")
    base = tmp_path / "events"
    one, two = (describe(base, base / "data" / name, schema, "day") for name in ("one", "two"))
    table.append(Batch("events:app", 0, Span("epoch", 0, 2)), one)
    ((old,),) = contents(table.place.table(), "day").values()
    change = rewriting.Change("compact", removed=[old], added=two)
    assert rewriting.commit(table, TableLocks(), change)
    return table


def meaning(commit: Path) -> list[Any]:
    found = []
    for line in commit.read_bytes().splitlines():
        ((name, action),) = json.loads(line).items()
        if name in MEANING:
            kept = {key: action.get(key) for key in MEANING[name]}
            found.append([name, kept | {"stats": json.loads(kept.get("stats") or "null")}])
    return found


def test_every_bit_that_matters_is_noticed(table: Table, tmp_path: Path) -> None:
    assert table.place.local is not None
    checked = 0
    for version in (1, 2):
        commit = table.place.local / "_delta_log" / f"{version:020}.json"
        assert commit_digest.KEY in commit.read_text()
        assert commit_digest.agrees(commit)
        whole, wanted = commit.read_bytes(), meaning(commit)
        copy = tmp_path / "copy.json"
        for bit in random.Random(version).sample(range(8 * len(whole)), 1500):
            changed = bytearray(whole)
            changed[bit // 8] ^= 1 << bit % 8
            copy.write_bytes(changed)
            try:
                if commit_digest.agrees(copy):
                    assert meaning(copy) == wanted, bit
                    continue
            except (ValueError, LookupError, TypeError, AttributeError):
                pass
            checked += 1
    assert checked > 500
