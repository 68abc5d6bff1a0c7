"""The one-line syntax: what people type becomes the same tree, and mistakes name their column."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tristore.errors import InvalidQuery
from tristore.metastore import filters, oneline
from tristore.metastore.filters import EVERYTHING, Node


def leaf(field: Any, op: str, value: Any) -> dict[str, Any]:
    return {"field": field, "op": op, "value": value}


def word(text: str) -> dict[str, Any]:
    return leaf("text", "matches", text)


PATH = ["metadata", "filestore", "path"]
RAW, TMP = leaf("tags", "array_contains", "raw"), leaf("tags", "array_contains", "tmp")


@pytest.mark.parametrize(
    ("line", "tree"),
    [
        ("owner:ops", leaf("owner", "eq", "ops")),
        ("owner=ops", leaf("owner", "eq", "ops")),
        ("owner!=ops", {"not": leaf("owner", "eq", "ops")}),
        ("owner:*", leaf("owner", "exists", True)),
        ("-owner:*", {"not": leaf("owner", "exists", True)}),
        ("tag:raw -tag:tmp", {"and": [RAW, {"not": TMP}]}),
        ("tag:raw AND NOT tag:tmp", {"and": [RAW, {"not": TMP}]}),
        ("tag:ra*", leaf("tags", "prefix", "ra")),
        ("key:abc*", leaf("key", "prefix", "abc")),
        ('key:"abc*"', leaf("key", "eq", "abc*")),
        ("metadata.size>10MB", leaf("metadata.size", "gt", 10_000_000)),
        ("metadata.size<=10MiB", leaf("metadata.size", "lte", 10 * 1024**2)),
        ("size>1.5kb", leaf(["metadata", "filestore", "sizeBytes"], "gt", 1500.0)),
        ("metadata.kind:raw", leaf("metadata.kind", "in", ["raw"])),
        ("metadata.code:17", leaf("metadata.code", "in", ["17", 17])),
        ('metadata.code:"17"', leaf("metadata.code", "in", ["17"])),
        ("metadata.on:true", leaf("metadata.on", "in", ["true", True])),
        ("metadata.note~core", leaf("metadata.note", "contains", "core")),
        ("metadata.at>=2026-11-01", leaf("metadata.at", "gte", "2026-11-01")),
        ('metadata["a.b"].c:x', leaf(["metadata", "a.b", "c"], "in", ["x"])),
        ("path:/landing/*", leaf(PATH, "prefix", "landing/")),
        ("path:landing/a.csv", leaf(PATH, "in", ["landing/a.csv"])),
        ("mount:m", leaf(["metadata", "filestore", "mount"], "in", ["m"])),
        ("updated>2026-11-01", leaf("updatedAt", "gt", "2026-11-01")),
        ("version>=3", leaf("version", "gte", 3)),
        ('"two words"', word("two words")),
        ('"say \\"hi\\""', word('say "hi"')),
        ("(a OR b) c", {"and": [{"or": [word("a"), word("b")]}, word("c")]}),
        ("a b OR c", {"or": [{"and": [word("a"), word("b")]}, word("c")]}),
        ("ORDER", word("ORDER")),
        ("--a", word("a")),
        (
            "created:2026-11-15",
            {
                "and": [
                    leaf("createdAt", "gte", "2026-11-15"),
                    leaf("createdAt", "lt", "2026-11-16"),
                ]
            },
        ),
    ],
)
def test_a_line_is_the_tree_it_looks_like(line: str, tree: dict[str, Any]) -> None:
    assert oneline.parse(line) == filters.parse(tree)


def test_nothing_finds_everything() -> None:
    assert oneline.parse("") == oneline.parse("  \t") == EVERYTHING


@pytest.mark.parametrize(
    ("line", "column", "says"),
    [
        ("owner:ops nothing:a", 11, "no field 'nothing'"),
        ("a (b OR c", 10, "not closed"),
        ("a) b", 2, "no bracket"),
        ("a OR", 5, "missing"),
        ("()", 2, "missing"),
        ("- ", 3, "missing"),
        ("owner:", 7, "missing"),
        ('owner:"ops', 7, "quote"),
        ('"a"b', 4, "ends with"),
        ("key:a*b", 1, "only at the end"),
        ("abc*", 1, "needs a field"),
        ("metadata.**:a", 1, "needs a field"),
        ("version:x", 1, "number"),
        ("updated>soon", 1, "time"),
        ("tag>a", 1, "takes"),
        ("text:a", 1, "stand alone"),
        ("(" * 2000, 10, "at most 8"),
    ],
)
def test_a_mistake_is_told_by_its_column(line: str, column: int, says: str) -> None:
    with pytest.raises(InvalidQuery, match=rf"^q, column {column}: .*{says}"):
        oneline.parse(line)


def test_size_is_bounded() -> None:
    with pytest.raises(InvalidQuery, match="2000 characters"):
        oneline.parse("a" * 2001)
    with pytest.raises(InvalidQuery, match=r"q: .*1000 conditions"):
        oneline.parse("a " * 1000)


@given(st.text('ab:*"\\()<>=~-. ORNTADmetadata[]0', max_size=40))
def test_any_line_is_read_or_refused(line: str) -> None:
    try:
        found: Node = oneline.parse(line)
    except InvalidQuery as error:
        assert str(error).startswith("q")
    else:
        filters.check_size(found)
