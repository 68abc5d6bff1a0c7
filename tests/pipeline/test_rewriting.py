"""Rewrites of a table: of several at once one counts, appends pass, and no row is there twice."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.pipeline.test_table import files, rows, table
from tristore.pipeline import rewriting
from tristore.pipeline.checkpoint import Span
from tristore.pipeline.contents import TableFile, contents, settled
from tristore.pipeline.datafiles import DataFile
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.rewriting import Change
from tristore.pipeline.table import Batch, Table

__all__ = ["table"]  # the fixture


def append(table: Table, number: int) -> None:
    span = Span("e", number * 3, number * 3 + 3)
    table.append(Batch("events:a", number, span), files(table, f"batch-{number}", span))


def listed(table: Table) -> list[TableFile]:
    return [file for found in contents(table.place.table(), "day").values() for file in found]


def merged(table: Table, through: int) -> list[DataFile]:
    return files(table, rewriting.sorted_name(), Span("e", 0, through))


def test_a_rewrite_changes_files_and_no_rows(table: Table, tmp_path: Path) -> None:
    append(table, 0)
    append(table, 1)
    change = Change("compaction", listed(table), merged(table, 6))
    assert rewriting.commit(table, TableLocks(), change)
    assert rewriting.commit(table, TableLocks(), change)  # its outcome was not known
    assert (rows(table), len(listed(table))) == ([1, 2, 3, 4, 5, 6], 1)
    assert settled(listed(table))
    assert table.through() == 6
    append(table, 2)
    assert not settled(listed(table))


def test_a_rewrite_of_files_that_are_gone_is_not_taken(table: Table) -> None:
    append(table, 0)
    append(table, 1)
    seen = listed(table)
    assert rewriting.commit(table, TableLocks(), Change("one", seen, merged(table, 6)))
    assert not rewriting.commit(table, TableLocks(), Change("two", seen, merged(table, 6)))
    assert rows(table) == [1, 2, 3, 4, 5, 6]


def test_what_was_found_missing_is_added_only_if_nobody_else_has(table: Table) -> None:
    append(table, 0)
    append(table, 1)
    after = rewriting.last(table.place.table(), table)
    for expected in (True, False):
        change = Change("backfill", added=merged(table, 1), same_rows=False, after=after)
        assert rewriting.commit(table, TableLocks(), change) is expected
    assert rows(table) == [1, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("shared", [True, False])
def test_of_many_rewrites_at_once_one_counts_while_rows_come(table: Table, shared: bool) -> None:
    """`shared`: threads of one driver; else processes of their own, kept apart by Delta alone."""
    append(table, 0)
    append(table, 1)
    seen, locks = listed(table), TableLocks()
    changes = [Change("compaction", seen, merged(table, 6)) for _ in range(4)]
    begin = threading.Barrier(5)

    def rewrite(change: Change) -> bool:
        begin.wait()
        return rewriting.commit(table, locks if shared else TableLocks(), change)

    def stream() -> None:
        begin.wait()
        for number in range(2, 6):
            append(table, number)

    with ThreadPoolExecutor(5) as pool:
        streamed = pool.submit(stream)
        assert sorted(pool.map(rewrite, changes)) == [False, False, False, True]
        streamed.result()
    assert rows(table) == list(range(1, 19))
