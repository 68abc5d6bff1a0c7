"""The rows of a log-fed table wherever it lies, and a table that has lost some of them."""

from typing import Any

import pyarrow as pa

from tristore.pipeline import rewriting
from tristore.pipeline.catalogue import find, table_of
from tristore.pipeline.contents import contents
from tristore.pipeline.growth import SUMS
from tristore.pipeline.rewriting import Change
from tristore.pipeline.tools import Tools

LOGGED = ("events", "filestore_activity", "filestore_growth")


def rows(tools: Tools, slug: str) -> list[Any]:
    """In an order of their own; of growth the sums, which may lie in any number of rows."""
    handle = table_of(tools.config, find(tools.config, slug)).place.table()
    found = pa.table(handle.to_pyarrow_table()).to_pylist()
    if slug == "filestore_growth":
        return sorted(_summed(found).items())
    return sorted(found, key=lambda row: tuple(str(value) for value in row.values()))


def _summed(found: list[dict[str, Any]]) -> dict[tuple[str, str, str], list[int]]:
    sums: dict[tuple[str, str, str], list[int]] = {}
    for row in found:
        total = sums.setdefault((str(row["hour"]), row["mount"], row["prefix"]), [0] * len(SUMS))
        for place, name in enumerate(SUMS):
            total[place] += row[name]
    return sums


def lose(tools: Tools, slug: str) -> None:
    """A table from which some of the files went."""
    dataset = find(tools.config, slug)
    table = table_of(tools.config, dataset)
    found = contents(table.place.table(), table.partition)
    files = [file for listed in found.values() for file in listed]
    change = Change("a test", removed=files[:1], same_rows=False)
    assert rewriting.commit(table, tools.locks, change)
