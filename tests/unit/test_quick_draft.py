"""The quick way to drafts accepts only what the careful way accepts, and sends the same event."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_plain_event import NAMES, ODD
from tests.unit.test_strictjson import VALUES
from tristore.errors import InvalidEvent
from tristore.events.registry.registry import Registry
from tristore.events.sdk.draft import Draft
from tristore.events.sdk.quick_draft import quick_drafts

REGISTRY = Registry.of_catalogue()
DEFAULTS = {"source": "unit"}
GOOD: dict[str, Any] = {"type": "test.thing.made", "payload": {"n": 1}, "id": "e-1"}


class Colour(Enum):
    RED = "red"


class Odd(str):
    pass


@dataclass
class Point:
    x: float


def nested(depth: int) -> Any:
    return {"a": nested(depth - 1)} if depth else 1


# What Python allows in a payload and JSON, or a reader of it, may not.
THINGS: list[Any] = [
    math.nan,
    math.inf,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**63),
    -(2**63) - 1,
    "9" * 19,
    "\x00",
    "\\u0000",
    "\ud800",
    "null",
    None,
    (1, 2),
    {1: 2},
    {Odd("a"): 1},
    Odd("x"),
    b"bytes",
    {1, 2},
    object(),
    Colour.RED,
    Point(math.nan),
    Point(1.5),
    UUID(int=1),
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1),
    nested(62),
    nested(63),
    nested(64),
    "x" * 10_000,
    1e300,
    1e-300,
]
PAYLOADS = st.dictionaries(st.sampled_from("abc"), VALUES | st.sampled_from(THINGS), max_size=3)
CHANGES = st.dictionaries(NAMES, ODD | st.sampled_from(THINGS), max_size=2)


def carefully(given: dict[str, Any]) -> Draft | None:
    try:
        return Draft.of({**DEFAULTS, **given}, REGISTRY)
    except InvalidEvent:
        return None


def sent(draft: Draft) -> dict[str, Any]:
    """The event on the wire, but for the moment it was stamped with."""
    fields: dict[str, Any] = orjson.loads(draft.body)
    return {k: v for k, v in fields.items() if k != "occurredAt"} | {"": draft.id}


def compare(events: list[dict[str, Any]]) -> None:
    for event, quick in zip(events, quick_drafts(events, DEFAULTS, REGISTRY), strict=True):
        if quick is not None:
            careful = carefully(event)
            assert careful is not None
            assert sent(quick) == sent(careful)


@given(st.lists(st.tuples(PAYLOADS, CHANGES), min_size=1, max_size=4))
@settings(max_examples=200)
def test_it_never_differs_from_the_careful_way(drawn: list[Any]) -> None:
    compare([{**GOOD, "payload": payload, **changes} for payload, changes in drawn])


def test_it_never_differs_whatever_is_in_a_payload() -> None:
    for thing in THINGS:
        compare([GOOD, {**GOOD, "payload": {"a": thing}}, {**GOOD, "payload": {"a": [thing]}}])


def test_ordinary_events_take_the_quick_way_beside_odd_ones() -> None:
    events = [GOOD, {**GOOD, "payload": {"n": math.nan}}, {**GOOD, "correlationId": "c", "ttl": 5}]
    assert [bool(draft) for draft in quick_drafts(events, DEFAULTS, REGISTRY)] == [
        True,
        False,
        True,
    ]


def test_an_event_without_an_id_is_given_one_of_its_own() -> None:
    bare = {"type": "test.thing.made", "payload": {}}
    drafts = list(quick_drafts([bare, bare], DEFAULTS, REGISTRY))
    assert len({draft.id for draft in drafts if draft}) == 2


@pytest.mark.parametrize("event", [{**GOOD, "type": "metastore.record.deleted"}, "text", None, 7])
def test_a_type_with_a_schema_and_what_is_no_event_are_left_to_the_careful_way(event: Any) -> None:
    assert list(quick_drafts([event], DEFAULTS, REGISTRY)) == [None]
