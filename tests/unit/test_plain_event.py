"""The quick way to an event says what the model says, or nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_strictjson import TEXT, VALUES
from tristore.errors import InvalidEvent
from tristore.events.envelope import Event
from tristore.events.plain_event import latest, plain_event

GOOD: dict[str, Any] = {
    "id": "e-1",
    "type": "test.thing.made",
    "source": "unit",
    "occurredAt": "2026-11-15T10:00:00.123456Z",
    "payload": {"n": 1, "text": "ü"},
}
EXTRAS = {"correlationId": "c", "ttl": 5, "metadata": {"a": [1]}, "schemaVersion": 3}
TIMES = [
    "2026-11-15T10:00:00Z",
    "2026-11-15T10:00:00.5+02:00",
    "2026-11-15T10:00:00.1234567Z",
    "2026-11-15T10:00:00-00:00",
    "2026-11-15T10:00:00+24:00",
    "2026-11-15T24:00:00Z",
    "2026-11-15T10:00:60Z",
    "2026-02-30T10:00:00Z",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+02:00",
    "9999-12-31T23:59:59-02:00",
    "2026-11-15 10:00:00Z",
    "2026-11-15t10:00:00z",
    "2026-11-15T10:00:00",
    "20261115T100000Z",
    "2026-W46-7T10:00:00Z",
    "٢٠٢٦-11-15T10:00:00Z",
    "1763200000",
    "",
]
EDGES: list[Any] = [
    *TIMES,
    *("x" * length for length in (1, 128, 129, 200, 201)),
    *("a.b.c", "a.b.c\n", "A.b.c", "a.b." + "c" * 196, "a.b." + "c" * 197),
    *(0, 1, -1, True, 2**31 - 1, 2**31, 2**63 - 1, 1.0, None),
    *({"x": "y" * length} for length in (16_376, 16_377, 262_136, 262_137)),
    *({}, []),
]
ODD = VALUES | st.sampled_from(EDGES)
NAMES = st.sampled_from([*GOOD, *EXTRAS, "occurred_at", "extra"]) | TEXT


def by_model(value: Any) -> Event | None:
    try:
        return Event.parse(value)
    except InvalidEvent:
        return None


def compare(value: dict[str, Any]) -> None:
    if (quick := plain_event(value, latest())) is not None:
        model = by_model(value)
        assert model is not None
        assert (quick, quick.body_hash()) == (model, model.body_hash())
        assert quick.to_json() == model.to_json()


@given(st.dictionaries(NAMES, ODD, max_size=3), st.booleans())
@settings(max_examples=200)
def test_it_never_differs_from_the_model(changes: dict[str, Any], full: bool) -> None:
    compare({**GOOD, **(EXTRAS if full else {}), **changes})


@pytest.mark.parametrize("name", [*GOOD, *EXTRAS, "occurred_at", "extra"])
def test_it_never_differs_at_the_edges(name: str) -> None:
    for edge in EDGES:
        compare({**GOOD, **EXTRAS, name: edge})
    compare({k: v for k, v in GOOD.items() if k != name})


def test_ordinary_events_take_the_quick_way() -> None:
    for value in (GOOD, {**GOOD, **EXTRAS}, {**GOOD, "occurredAt": "2026-11-15T10:00:00+02:00"}):
        assert plain_event(value, latest()) == Event.parse(value)


def test_the_future_is_left_to_the_model() -> None:
    for hours in (23, 25):
        text = (datetime.now(UTC) + timedelta(hours=hours)).isoformat()
        quick = plain_event({**GOOD, "occurredAt": text}, latest())
        assert (quick is not None) == (hours == 23)


def test_a_quick_event_is_changed_like_any_other() -> None:
    """The registry stamps a copy; the original and its neighbours stay as they are."""
    one, two = plain_event(GOOD, latest()), plain_event({**GOOD, "id": "e-2"}, latest())
    assert one is not None and two is not None
    stamped = one.model_copy(update={"schema_version": 7})
    assert (stamped.schema_version, one.schema_version, two.schema_version) == (7, None, None)
    assert stamped.to_json() == {**one.to_json(), "schemaVersion": 7}
