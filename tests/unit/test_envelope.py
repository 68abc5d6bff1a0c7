"""The envelope's rules, and what makes two events the same."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tristore.errors import InvalidEvent
from tristore.events.envelope import Event, new_id

GOOD = {
    "id": "e-1",
    "type": "test.thing.made",
    "source": "unit",
    "occurredAt": "2026-11-15T10:00:00+02:00",
    "payload": {"n": 1},
}


def nested(depth: int) -> dict[str, Any]:
    return {"a": nested(depth - 1)} if depth > 1 else {}


def test_times_are_kept_in_utc_and_written_with_z() -> None:
    assert Event.parse(GOOD).to_json()["occurredAt"] == "2026-11-15T08:00:00.000000Z"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""),
        ("id", "x" * 129),
        ("type", "Upper.case.type"),
        ("type", "two.parts"),
        ("type", "a..b.c"),
        ("type", "a.b.c\n"),
        ("type", "a." * 100 + "bb"),
        ("source", ""),
        ("source", "x" * 201),
        ("occurredAt", "yesterday"),
        ("occurredAt", "2026-11-15T10:00:00"),
        ("occurredAt", 1763200000),
        ("payload", []),
        ("payload", {"x": "y" * 262_144}),
        ("correlationId", "x" * 201),
        ("ttl", 0),
        ("ttl", 1.5),
        ("ttl", "5"),
        ("metadata", {"x": "y" * 16_384}),
        ("schemaVersion", 0),
        ("unknown", 1),
    ],
)
def test_a_broken_rule_is_named_by_its_place(field: str, value: Any) -> None:
    with pytest.raises(InvalidEvent) as refused:
        Event.parse({**GOOD, field: value})
    assert [violation.path for violation in refused.value.violations] == [f"/{field}"]


def test_a_violation_speaks_of_json_and_not_of_python() -> None:
    with pytest.raises(InvalidEvent, match="/payload: input should be a JSON object"):
        Event.parse({**GOOD, "payload": []})


def test_every_violation_is_listed() -> None:
    with pytest.raises(InvalidEvent) as refused:
        Event.parse({"id": 7, "type": "x", "extra": 1})
    paths = {violation.path for violation in refused.value.violations}
    assert paths == {"/id", "/type", "/source", "/occurredAt", "/payload", "/extra"}


def test_the_future_is_refused_beyond_a_day() -> None:
    near = (datetime.now(UTC) + timedelta(hours=23)).isoformat()
    assert Event.parse({**GOOD, "occurredAt": near})
    far = (datetime.now(UTC) + timedelta(hours=25)).isoformat()
    with pytest.raises(InvalidEvent, match="24 hours"):
        Event.parse({**GOOD, "occurredAt": far})


def test_our_own_events_obey_the_same_rules() -> None:
    assert Event.make("a.b.c", nested(64), source="s").payload == nested(64)
    for payload in (nested(65), {"x": math.nan}, {"x": math.inf}, {"x": 2**63}, {"x": "\x00"}):
        with pytest.raises(InvalidEvent):
            Event.make("a.b.c", payload, source="s")
    with pytest.raises(InvalidEvent):
        Event.make("a.b.c", {"x": object()}, source="s")


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"occurredAt": "2026-11-15T09:00:00Z"}, True),
        ({"correlationId": "c"}, True),
        ({"payload": {"n": 2}}, False),
        ({"payload": {"n": 1.5}}, False),
        ({"type": "test.thing.changed"}, False),
        ({"source": "other"}, False),
        ({"metadata": {"a": 1}}, False),
    ],
)
def test_two_events_are_the_same_by_what_happened(change: dict[str, Any], same: bool) -> None:
    hashes = Event.parse(GOOD).body_hash(), Event.parse({**GOOD, **change}).body_hash()
    assert (hashes[0] == hashes[1]) is same


def test_key_order_does_not_make_another_body() -> None:
    one = Event.parse({**GOOD, "payload": {"a": 1, "b": {"c": 2, "d": 3}}})
    two = Event.parse({**GOOD, "payload": {"b": {"d": 3, "c": 2}, "a": 1}})
    assert one.body_hash() == two.body_hash()


def test_new_ids_are_uuid7_and_sort_by_time() -> None:
    ids = [new_id() for _ in range(3)]
    assert {UUID(each).version for each in ids} == {7}
    assert abs(int(ids[0].replace("-", "")[:12], 16) / 1000 - datetime.now(UTC).timestamp()) < 5
