"""Filter trees: what is refused says where, and nothing of a field ever becomes SQL text."""

from typing import Any

import pytest
from psycopg import sql

from tristore.errors import InvalidQuery
from tristore.metastore import fields, filters
from tristore.metastore.binding import Binding
from tristore.metastore.compile import Compiler, successor
from tristore.metastore.filters import And, Leaf, Not, Or

LEAF = {"field": "metadata.a", "op": "eq", "value": 1}


def nested(levels: int) -> dict[str, Any]:
    tree: dict[str, Any] = LEAF
    for _ in range(levels - 1):
        tree = {"not": tree}
    return tree


def test_a_tree_becomes_typed_nodes() -> None:
    found = filters.parse(
        {"and": [{"not": LEAF}, {"or": [LEAF, {**LEAF, "field": "owner", "value": None}]}]}
    )
    leaf = Leaf(fields.parse("metadata.a"), "eq", 1)
    assert found == And((Not(leaf), Or((leaf, Leaf(fields.parse("owner"), "eq", None)))))


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("metadata.a.b", ["a", "b"]),
        ('metadata["a.b"].c', ["a.b", "c"]),
        ('metadata["a\\"b"]', ['a"b']),
        (["metadata", "a.b", "**"], ["a.b", "**"]),
        ("metadata.größe-2.0", ["größe-2", "0"]),
        ("metadata", []),
    ],
)
def test_a_metadata_path_is_read_and_written_alike(written: Any, path: list[str]) -> None:
    found = fields.parse(written)
    assert found.path == tuple(path)
    assert fields.parse(found.name) == found


@pytest.mark.parametrize(
    "name",
    [
        *["nothing", "metadata.", "metadata..a", "metadata.*", "metadata.**", "metadata[*]", "$.a"],
        *["metadata.a[0]", "metadata.a.$", "metadata.a ? (@ > 1)", "Key", "key ", "metadataa", ""],
        *["metadata.a'--", 'metadata["a', 'metadata["\\u0000"]', "metadata.a\x00", None, 1, {}],
        *[[], ["a"], ["metadata", 1], ["metadata", "\ud800"], "metadata" + ".a" * 33],
        "metadata." + "a" * 500,
    ],
)
def test_a_field_that_means_nothing_is_refused_with_its_place(name: Any) -> None:
    with pytest.raises(InvalidQuery, match=r"filter\.or\[1\]\.field: "):
        filters.parse({"or": [LEAF, {"field": name, "op": "eq", "value": 1}]})


@pytest.mark.parametrize(
    ("field", "op", "value", "place"),
    [
        ("metadata.a", "like", "x", "op"),
        ("metadata.a", None, "x", "op"),
        ("tags", "lt", "x", "op"),
        ("version", "prefix", "1", "op"),
        ("text", "eq", "x", "op"),
        ("version", "eq", "1", "value"),
        ("version", "eq", True, "value"),
        ("key", "eq", None, "value"),
        ("createdAt", "gt", 5, "value"),
        ("createdAt", "gt", "yesterday", "value"),
        ("createdAt", "gt", "2026-11-15T10:00:00", "value"),
        ("createdAt", "gt", "0001-01-01", "value"),
        ("metadata.a", "lt", True, "value"),
        ("metadata.a", "lt", [1], "value"),
        ("metadata.a", "between", [1], "value"),
        ("metadata.a", "between", [1, "a"], "value"),
        ("metadata.a", "in", 1, "value"),
        ("metadata.a", "in", [0] * 1001, "value"),
        ("metadata.a", "array_contains", [1], "value"),
        ("metadata.a", "has_key", 1, "value"),
        ("metadata.a", "prefix", "a" * 10_001, "value"),
        ("metadata.a", "exists", 1, "value"),
        ("tags", "array_contains", "\x00", "value"),
        ("tags", "eq", "raw", "value"),
    ],
)
def test_an_operation_or_value_that_does_not_fit_is_refused(
    field: str, op: Any, value: Any, place: str
) -> None:
    with pytest.raises(InvalidQuery, match=rf"^filter\.{place}: "):
        filters.parse({"field": field, "op": op, "value": value})


@pytest.mark.parametrize(
    "tree",
    [
        *[None, [], "a", {}, {"and": LEAF}, {"and": [LEAF], "or": [LEAF]}, {"not": [LEAF]}],
        *[{"nand": []}, {"field": "key", "op": "eq", "value": "a", "x": 1}, {"field": "key"}],
    ],
)
def test_what_is_no_tree_is_refused(tree: Any) -> None:
    with pytest.raises(InvalidQuery, match="filter"):
        filters.parse(tree)


def test_depth_and_size_are_bounded() -> None:
    filters.parse(nested(8))
    with pytest.raises(InvalidQuery, match="at most 8 deep"):
        filters.parse(nested(9))
    with pytest.raises(InvalidQuery, match="at most 8 deep"):
        filters.parse(nested(60))
    filters.parse({"or": [LEAF] * 999})
    with pytest.raises(InvalidQuery, match=r"filter\.or\[999\]: a filter has at most 1000 nodes"):
        filters.parse({"or": [LEAF] * 1000})


def test_no_text_of_a_filter_is_part_of_the_statement() -> None:
    evil = "x'); DROP TABLE metastore.records; --%s{}"
    given = [
        {"field": ["metadata", evil], "op": op, "value": evil}
        for op in ("eq", "neq", "lt", "prefix", "contains", "has_key", "array_contains")
    ]
    given += [{"field": "owner", "op": op, "value": evil} for op in ("eq", "gte", "prefix")]
    given += [{"field": "tags", "op": "array_contains", "value": evil}]
    given += [{"field": "text", "op": "matches", "value": evil}]
    binding = Binding()
    compiler = Compiler(binding, {'[["a"]]': [evil]})
    text = compiler.condition(filters.parse({"and": given})).as_string(None)
    assert evil not in text and "DROP" not in text
    assert isinstance(sql.SQL(text), sql.SQL)
    assert any(evil in str(value) for value in binding.values.values())


@pytest.mark.parametrize("prefix", ["a", "ab\U0010ffff", "\ud7ff", "é", "\uffff", "a" * 200])
def test_the_successor_bounds_just_what_begins_with_the_prefix(prefix: str) -> None:
    above = successor(prefix)
    assert above is not None
    assert prefix < prefix + "\U0010ffff" * 3 < above
    assert not above.startswith(prefix)
    assert successor("") is None and successor("\U0010ffff" * 2) is None
