"""Patches: RFC 7396 as its appendix has it, and tags."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tristore.errors import InvalidRecord
from tristore.merge_patch import merged
from tristore.metastore.content import Content
from tristore.metastore.model import same_json
from tristore.metastore.patching import Patch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("abc", max_size=1), JSON, max_size=3)


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_the_rfc(before: Any, patch: Any, after: Any) -> None:
    assert merged(before, patch) == after


@given(OBJECTS, OBJECTS)
def test_a_patch_applied_twice_changes_nothing_more(before: Any, patch: Any) -> None:
    kept = copy.deepcopy((before, patch))
    once = merged(before, patch)
    assert same_json(merged(once, patch), once)
    assert same_json([before, patch], list(kept)), "neither is changed"


@given(OBJECTS)
def test_an_empty_patch_changes_nothing(before: Any) -> None:
    assert same_json(merged(before, {}), before)


def tags(before: list[str], patch: Any) -> tuple[str, ...]:
    return Patch.of({"tags": patch}).applied(Content({}, tuple(before), None)).tags


def test_tags_are_set_then_removed_then_added() -> None:
    assert tags(["a", "b"], {"add": ["c", "a"]}) == ("a", "b", "c")
    assert tags(["a", "b"], {"remove": ["a", "x"]}) == ("b",)
    assert tags(["a", "b"], {"set": ["z", "y"]}) == ("y", "z")
    assert tags(["a"], {"set": ["z", "y"], "remove": ["y"], "add": ["a", "y"]}) == ("a", "y", "z")
    assert tags(["a"], ["n"]) == ("n",)
    assert tags(["a"], {}) == ("a",)


def test_null_takes_the_owner_away_and_silence_keeps_it() -> None:
    before = Content({}, (), "ops")
    assert Patch.of({"owner": None}).applied(before).owner is None
    assert Patch.of({}).applied(before).owner == "ops"
    assert Patch.of({"owner": "dev"}).applied(before).owner == "dev"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (None, ""),
        ([], ""),
        ({"metadata": None}, "/metadata"),
        ({"metadata": [1]}, "/metadata"),
        ({"tags": None}, "/tags"),
        ({"tags": {"append": []}}, "/tags/append"),
        ({"tags": {"add": "x"}}, "/tags/add"),
        ({"tags": {"set": [None]}}, "/tags/set/0"),
        ({"owner": []}, "/owner"),
        ({"version": 1}, "/version"),
    ],
)
def test_a_wrong_patch_is_told_where(given: Any, path: str) -> None:
    with pytest.raises(InvalidRecord) as refused:
        Patch.of(given)
    assert [violation.path for violation in refused.value.violations] == [path]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        ([0], [False], False),
        ({"a": {"b": [1, True]}}, {"a": {"b": [1.0, True]}}, True),
        ({"a": {"b": [1, True]}}, {"a": {"b": [1, 1]}}, False),
        ({"a": None}, {}, False),
    ],
)
def test_json_is_compared_as_postgres_does(one: Any, other: Any, same: bool) -> None:
    assert same_json(one, other) is same
