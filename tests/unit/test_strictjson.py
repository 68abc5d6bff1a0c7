"""Strict JSON: what everyone reads alike is accepted, the rest refused with a reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tristore.events.strictjson import MAX_DEPTH, StrictJsonError, loads

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
SCALARS = (
    st.none()
    | st.booleans()
    | TEXT
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


@given(VALUES)
def test_what_it_accepts_it_reads_exactly(value: Any) -> None:
    for ascii_only in (True, False):
        assert loads(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_its_own_error(data: bytes) -> None:
    try:
        assert loads(data) == json.loads(data)
    except StrictJsonError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a":1,"a":2}', "duplicate key 'a'"),
        ("NaN", "NaN"),
        ("-Infinity", "Infinity"),
        ("1e999", "double"),
        (str(2**63), "int64"),
        (str(-(2**63) - 1), "int64"),
        ("1" * 5000, "int64"),
        ('"\\u0000"', "NUL"),
        ('{"\\u0000":1}', "NUL"),
        ('"\\ud800"', "surrogate"),
        ('"\\uDFFF"', "surrogate"),
        ('["\\ud83d"]', "surrogate"),
        ("[" * 100_000, "deeper"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "deeper"),
        ("", "not JSON"),
        ("{} {}", "not JSON"),
        ('"a\nb"', "not JSON"),
    ],
)
def test_it_refuses_and_says_why(text: str, says: str) -> None:
    with pytest.raises(StrictJsonError, match=says):
        loads(text.encode())


@pytest.mark.parametrize(
    "text", ["[" * MAX_DEPTH + "]" * MAX_DEPTH, '"\\\\u0000"', '"\\ud83d\\ude00"', str(2**53 + 1)]
)
def test_it_accepts_the_edge(text: str) -> None:
    assert loads(text.encode()) == json.loads(text)


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(StrictJsonError, match="not UTF-8 at byte 1"):
        loads(b'"\xff"')
