"""Cutting a batch into events must agree with parsing it, and survive anything."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_strictjson import TEXT, VALUES
from tristore.events import wire

OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)


@given(st.lists(OBJECTS, max_size=6), st.sampled_from([None, 1]))
def test_the_cut_elements_are_the_parsed_ones(events: list[Any], indent: int | None) -> None:
    data = json.dumps({"events": events}, indent=indent).encode()
    parsed = wire.read("events", data)
    assert [json.loads(item.raw) for item in parsed] == events


@given(st.lists(OBJECTS, min_size=1, max_size=6), st.integers(0, 5))
def test_a_bad_neighbour_leaves_the_others_readable(events: list[Any], place: int) -> None:
    parts = [json.dumps(event) for event in events]
    parts.insert(place, '{"a": NaN}')
    found = wire.read("events", ('{"events":[' + ",".join(parts) + "]}").encode())
    assert [item.value for item in found if item.refusal is None] == events
    assert [item.raw for item in found if item.refusal] == [b'{"a": NaN}']


@given(st.binary(max_size=300), st.sampled_from(["event", "events", "other"]))
def test_any_bytes_are_answered(tail: bytes, name: str) -> None:
    for data in (tail, b'{"events":[' + tail, b'{"events":["' + tail):
        for item in wire.read(name, data):
            assert item.refusal is not None or item.value is not None or item.raw == b"null"
            assert item.raw in data


def test_a_million_unclosed_quotes_cost_one_pass() -> None:
    found = wire.read("events", b'{"events":[' + b'"\\' * 500_000)
    assert [item.refusal is not None for item in found] == [True]
