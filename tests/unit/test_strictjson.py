"""Strict JSON: what everyone reads alike is accepted, the rest refused with a reason."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tristore.events import quickjson, strictjson
from tristore.events.strictjson import (
    MAX_DEPTH,
    MAX_KEY_CHARS,
    MAX_KEYS,
    StrictJsonError,
    loads,
)

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


# Pieces that together make keys that come twice, marks inside strings and odd spacing likely.
PIECES = st.lists(
    st.sampled_from(
        [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"a"',
            '"b"',
            '"a":',
            '"a" :',
            '"x\\":y"',
            '"\\\\":',
            "1",
            "1e5",
            "1e999",
            "-1.5E+999",
            "-0",
            "9223372036854775808",
            "18446744073709551615",
            "0.1",
            "null",
            " ",
        ]
    ),
    max_size=14,
)


@given(PIECES.map("".join) | st.dictionaries(TEXT, VALUES, max_size=3).map(json.dumps))
@settings(max_examples=500)
def test_the_quick_way_never_differs_from_the_strict_one(text: str) -> None:
    limits = {"max_depth": 8, "max_keys": MAX_KEYS, "max_key_chars": MAX_KEY_CHARS}
    quick = quickjson.loads(text.encode(), **limits)
    if quick is not quickjson.UNSURE:
        strict = strictjson._loads(text.encode(), 8)
        assert (repr(quick), type(quick)) == (repr(strict), type(strict))


def test_the_quick_way_is_taken_by_ordinary_events() -> None:
    event = b'{"id":"01a1df06-e123-7e456","payload":{"n":1e5,"x":[0.5,{"y":null}]}}'
    assert quickjson.loads(event, max_depth=65, max_keys=9, max_key_chars=99) == json.loads(event)
    for text in (b'{"a":1,"a":2}', b'{"a":1,"a" :2}', b'{"a":{"b":1,"b":1}}', b'{"a":"\\":"}'):
        assert quickjson.loads(text, max_depth=65, max_keys=9, max_key_chars=99) is quickjson.UNSURE
