"""CloudEvents in and out: the same event in two shapes, and nothing lost between them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.api import Api, own_api
from tests.support.database import rows
from tristore.db.pool import make_pool
from tristore.errors import InvalidEvent
from tristore.events import log
from tristore.events.cloudevents import BATCH, ONE, from_cloudevent, to_cloudevent
from tristore.events.envelope import Event

CLOUD: dict[str, Any] = {
    "specversion": "1.0",
    "id": "a-1",
    "source": "/orders/eu",
    "type": "com.example.order.placed",
    "time": "2026-11-15T10:00:00+01:00",
    "datacontenttype": "application/json; charset=utf-8",
    "subject": "order/7",
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "correlationid": "run-7",
    "ttl": 60_000,
    "myextension": True,
    "data": {"n": 1},
}


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as running:
        yield running


def post(api: Api, body: Any, kind: str) -> httpx.Response:
    headers = {**api.bearer("events:publish"), "Content-Type": kind}
    content = httpx.Request("POST", api.url, json=body).content
    return httpx.post(f"{api.url}/v1/events", content=content, headers=headers)


def test_a_cloudevent_becomes_an_event_and_one_again(api: Api) -> None:
    assert post(api, CLOUD, ONE).status_code == 202
    (row,) = rows(api.database, "SELECT envelope FROM bus.outbox WHERE event_id = 'a-1'")
    event = Event.parse(httpx.Response(200, content=row["envelope"]).json())
    assert (event.type, event.source, event.payload) == (CLOUD["type"], CLOUD["source"], {"n": 1})
    assert (event.correlation_id, event.ttl) == ("run-7", 60_000)
    assert event.to_json()["occurredAt"] == "2026-11-15T09:00:00.000000Z"
    assert event.metadata == {
        "traceparent": CLOUD["traceparent"],
        "cloudevents": {"subject": "order/7", "myextension": True},
    }
    changed = {"time": "2026-11-15T09:00:00.000000Z", "datacontenttype": "application/json"}
    assert to_cloudevent(event.to_json()) == CLOUD | changed


def test_stored_events_are_offered_as_cloudevents(api: Api) -> None:
    made = [Event.make("test.cloud.seen", {"n": n}, source="test") for n in range(3)]
    asyncio.run(store(api.database, made))
    headers = api.bearer("events:read")
    path = f"{api.url}/admin/events"
    one = httpx.get(f"{path}/{made[0].id}", headers={**headers, "Accept": ONE})
    assert one.headers["content-type"] == ONE
    assert (one.json()["specversion"], one.json()["data"]) == ("1.0", {"n": 0})
    page = httpx.get(
        f"{path}?type=test.cloud.seen&limit=2&order=asc", headers={**headers, "Accept": BATCH}
    )
    assert [event["id"] for event in page.json()] == [made[0].id, made[1].id]
    rest = {"type": "test.cloud.seen", "order": "asc", "cursor": page.headers["x-next-cursor"]}
    last = httpx.get(path, params=rest, headers={**headers, "Accept": BATCH})
    assert [event["id"] for event in last.json()] == [made[2].id]


async def store(database: str, made: list[Event]) -> None:
    async with make_pool(database, name="test", max_size=1) as pool:
        async with pool.connection() as conn, conn.transaction():
            await log.append(conn, made, [event.body_hash() for event in made])


def test_a_batch_is_taken_whole_and_a_retry_is_a_duplicate(api: Api) -> None:
    batch = [CLOUD | {"id": f"b-{n}"} for n in range(3)]
    assert post(api, batch, f"{BATCH}; charset=utf-8").status_code == 202
    again = post(api, batch, BATCH).json()["results"]
    assert [result["status"] for result in again] == ["duplicate"] * 3


def test_a_type_of_the_catalogue_is_held_to_its_schema(api: Api) -> None:
    drift = {"mount": "m", "path": "p", "reason": "modified", "journalId": 1}
    good = CLOUD | {"id": "c-1", "type": "filestore.drift.detected", "data": drift}
    good["dataschema"] = "urn:tristore:schema:filestore.drift.detected:1"
    assert post(api, good, ONE).status_code == 202
    bad = post(api, good | {"id": "c-2", "data": {"mount": 7}}, ONE)
    assert bad.status_code == 422
    assert "/payload/mount" in {error["path"] for error in bad.json()["errors"]}


BAD: list[tuple[dict[str, Any], str]] = [
    ({"specversion": "0.3"}, "/specversion"),
    ({"specversion": None}, "/specversion"),
    ({"data": None, "data_base64": "AA=="}, "/data_base64"),
    ({"data": "text"}, "/payload"),
    ({"datacontenttype": "text/plain"}, "/datacontenttype"),
    ({"Upper": 1}, ""),
    ({"nested": {"a": 1}}, "/nested"),
    ({"ttl": "soon"}, "/ttl"),
    ({"metadata": "[1]"}, "/metadata"),
    ({"type": "Order"}, "/type"),
    ({"time": 7}, "/occurredAt"),
    ({"source": ""}, "/source"),
]


@pytest.mark.parametrize(("change", "path"), BAD)
def test_what_is_wrong_with_a_cloudevent_is_named(
    api: Api, change: dict[str, Any], path: str
) -> None:
    before = api.stored()
    refused = post(api, [CLOUD | {"id": "d-1"}, CLOUD | {"id": "d-2"} | change], BATCH)
    assert refused.status_code == 422, refused.text
    assert [error["path"] for error in refused.json()["errors"]] == [f"/1{path}"]
    assert api.stored() == before


def test_one_and_many_are_not_mixed_up(api: Api) -> None:
    assert post(api, [CLOUD], ONE).status_code == 400
    assert post(api, CLOUD, BATCH).status_code == 400
    assert post(api, "text", ONE).status_code == 422


NAMES = st.from_regex(r"[a-z]{3,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)


@given(
    st.dictionaries(NAMES, st.one_of(TEXTS, st.booleans(), st.integers(-(2**63), 2**63 - 1))),
    st.integers(1, 2**63 - 1) | st.none(),
    st.integers(1, 99) | st.none(),
    st.dictionaries(TEXTS, st.one_of(TEXTS, st.none(), st.booleans())),
)
def test_an_event_survives_the_way_there_and_back(
    metadata: dict[str, Any], ttl: int | None, version: int | None, carried: dict[str, Any]
) -> None:
    given_metadata = {**metadata, "traceparent": "00-1"}
    event = Event.make(
        "test.thing.made",
        {"any": carried},
        source="test",
        ttl=ttl,
        schemaVersion=version,
        correlationId="c",
        metadata=given_metadata,
    )
    cloud = to_cloudevent(event.to_json())
    assert all(isinstance(v, str | int) for name, v in cloud.items() if name != "data")
    assert Event.parse(from_cloudevent(cloud)) == event


@given(st.recursive(st.none() | st.booleans() | st.integers() | TEXTS, st.lists, max_leaves=5))
def test_any_other_value_is_refused_and_never_breaks_it(value: Any) -> None:
    for shaped in (value, {"specversion": "1.0", "ttl": value, "metadata": value, "x": value}):
        try:
            from_cloudevent(shaped)
        except InvalidEvent as refusal:
            assert refusal.violations
