"""The path language: what it reads, and that it refuses everything else."""

import pytest

from tristore.errors import InvalidQuery
from tristore.events.admin.jsonpath import JsonPath


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("$.a", JsonPath(("a",))),
        ("$.a.b[0]", JsonPath(("a", "b", "0"))),
        ('$.a == "x"', JsonPath(("a",), "==", '"x"')),
        ("$[\"a b\"]['c'] != null", JsonPath(("a b", "c"), "!=", "null")),
        ("$.size>=10", JsonPath(("size",), ">=", "10")),
        ("$.t < 1.5e3", JsonPath(("t",), "<", "1.5e3")),
        ('$.a == "x == y"', JsonPath(("a",), "==", '"x == y"')),
    ],
)
def test_a_path_is_a_list_of_keys(text: str, path: JsonPath) -> None:
    assert JsonPath.parse(text) == path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "$",
        "a",
        "$.",
        "$.**",
        "$.**.secret",
        "$.**.**.**.**.**.**",
        "$.a.*",
        "$[*]",
        "$[-1]",
        "$.a ? (@ > 1)",
        "$.a.size()",
        '$.a like_regex "x"',
        "$.a == [1]",
        "$.a == {}",
        "$.a == x",
        "$.a == NaN",
        "$.a == 1e999",
        '$.a == "\\u0000"',
        '$.a == "\\ud800"',
        "$.a == 1 || $.b == 2",
        "$.a == 1; DROP TABLE bus.tokens",
        "strict $.a",
        '$["a\x00"]',
        "$" + ".a" * 33,
        "$." + "a" * 600,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        JsonPath.parse(text)
