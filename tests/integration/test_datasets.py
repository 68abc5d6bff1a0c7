"""Datasets over HTTP: made, altered, deleted and made anew, and seen only by who may."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import value
from tests.support.timestore import ALL, BASE, Set, new_slug, weather


@pytest.fixture(scope="module")
def api(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("data")
    with own_api(server_url, "inline", TRISTORE_DATA_DIR=str(folder)) as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=60) as client:
        yield client


def test_a_datasets_life(http: httpx.Client) -> None:
    slug = new_slug()
    made = http.post(f"{BASE}/datasets", json=weather(slug, retention={"maxAge": "90d"}))
    assert made.status_code == 201 and made.headers["etag"] == '"1"'
    shown = made.json()
    assert shown["retention"] == {"maxAge": "90d"} and shown["kind"] == "ingest"
    assert [(c["name"], c["nullable"]) for c in shown["schema"]] == [
        ("at", False),
        ("station", False),
        ("celsius", True),
    ]
    one = Set(http, slug)
    assert one.get() == shown

    grown = one.patch(schema=[{"name": "wind", "type": "long"}], latenessSeconds=60)
    assert grown.status_code == 200 and grown.json()["version"] == 2
    assert one.columns() == {
        "at": "timestamp",
        "station": "string",
        "celsius": "double",
        "wind": "long",
    }
    assert one.patch(schema=grown.json()["schema"]).json()["version"] == 2, "nothing changed"
    assert http.delete(one.path).status_code == 204
    assert http.get(one.path).status_code == 404
    assert one.patch(latenessSeconds=1).status_code == 404
    assert http.delete(one.path).status_code == 404


def test_a_slug_that_is_free_again_gets_another_folder(http: httpx.Client, api: Api) -> None:
    one = Set.make(http)
    taken = http.post(f"{BASE}/datasets", json=weather(one.slug))
    assert taken.status_code == 409 and one.slug in taken.json()["detail"]
    where = "SELECT folder FROM timestore.datasets WHERE slug = %s"
    before = value(api.database, where, one.slug)
    key = {"Idempotency-Key": "k"}
    body = b'{"at":"2026-11-15T10:00:00Z","station":"a"}'
    first = one.send(body, "application/x-ndjson", key).json()["ingestId"]
    asked = http.post(f"{one.path}/exports", json={})
    assert asked.status_code == 202

    http.delete(one.path)
    told = http.get(f"{BASE}/ingests/{first}").json()
    assert told["status"] == "failed" and "deleted" in told["error"]
    assert http.post(f"{BASE}/datasets", json=weather(one.slug)).status_code == 201
    assert value(api.database, where, one.slug) != before
    again = one.send(body, "application/x-ndjson", key)
    assert again.status_code == 202 and again.json()["ingestId"] != first
    export = http.get(asked.headers["location"]).json()
    assert (export["state"], export["error"]) == ("failed", "the dataset was deleted")


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"slug": "Weather"}, "slug"),
        ({"slug": "a b"}, "slug"),
        ({"slug": "x" * 64}, "slug"),
        ({"granularity": "minute"}, "granularity"),
        ({"timeColumn": "when"}, "timeColumn"),
        ({"timeColumn": "station"}, "timeColumn"),
        ({"schema": []}, "schema"),
        ({"schema": [{"name": "at", "type": "text"}]}, "type"),
        ({"schema": [{"name": "at", "type": "timestamp"}, {"name": "AT", "type": "long"}]}, "name"),
        ({"schema": [{"name": "_at", "type": "timestamp"}], "timeColumn": "_at"}, "name"),
        ({"schema": [{"name": 'a"b', "type": "timestamp"}], "timeColumn": 'a"b'}, "name"),
        ({"retention": {"maxAge": "soon"}}, "maxAge"),
        ({"retention": {"maxBytes": 0}}, "maxBytes"),
        ({"latenessSeconds": -1}, "latenessSeconds"),
        ({"readScope": "events:read"}, "readScope"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_malformed_dataset_is_refused_with_its_reason(
    http: httpx.Client, change: dict[str, Any], path: str
) -> None:
    answer = http.post(f"{BASE}/datasets", json={**weather(new_slug()), **change})
    assert answer.status_code == 422
    assert any(error["path"].endswith(path) for error in answer.json()["errors"]), answer.text


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"schema": [{"name": "celsius", "type": "long"}]}, "celsius"),
        ({"schema": [{"name": "wind", "type": "long", "nullable": False}]}, "wind"),
        ({"schema": [{"name": "celsius", "type": "double", "nullable": False}]}, "celsius"),
        ({"schema": [{"name": "Station", "type": "string"}]}, "Station"),
        ({"timeColumn": "celsius"}, "timeColumn"),
        ({"granularity": "hour"}, "granularity"),
    ],
)
def test_a_change_that_would_break_readers_names_the_column(
    http: httpx.Client, change: dict[str, Any], word: str
) -> None:
    one = Set.make(http)
    before = one.get()
    answer = one.patch(**change)
    assert answer.status_code == 409 and word in answer.json()["detail"]
    assert one.get() == before


def test_a_change_may_be_bound_to_a_version(http: httpx.Client) -> None:
    one = Set.make(http)
    assert one.patch({"If-Match": '"1"'}, latenessSeconds=5).status_code == 200
    assert one.patch({"If-Match": '"1"'}, latenessSeconds=6).status_code == 412
    assert one.get()["latenessSeconds"] == 5


def test_making_one_may_be_repeated_with_its_key(http: httpx.Client) -> None:
    body, key = weather(new_slug()), {"Idempotency-Key": "make"}
    first = http.post(f"{BASE}/datasets", json=body, headers=key)
    again = http.post(f"{BASE}/datasets", json=body, headers=key)
    assert again.status_code == 201 and again.json() == first.json()
    assert again.headers["idempotency-replayed"] == "true"
    for other in ({**body, "granularity": "hour"}, weather(new_slug())):
        refused = http.post(f"{BASE}/datasets", json=other, headers=key)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:tristore:key-conflict")
    Set(http, str(body["slug"])).patch(latenessSeconds=7)
    assert http.post(f"{BASE}/datasets", json=body, headers=key).json()["latenessSeconds"] == 7
    http.delete(f"{BASE}/datasets/{body['slug']}")
    anew = http.post(f"{BASE}/datasets", json=body, headers=key)
    assert anew.status_code == 201 and "idempotency-replayed" not in anew.headers


def test_the_logs_datasets_are_listed_and_guarded(http: httpx.Client) -> None:
    listed = http.get(f"{BASE}/datasets").json()["items"]
    kinds = {item["slug"]: item["kind"] for item in listed}
    log = {"events", "filestore_activity", "filestore_growth"}
    assert log == {slug for slug, kind in kinds.items() if kind == "log"}
    assert http.delete(f"{BASE}/datasets/events").status_code == 403
    assert http.post(f"{BASE}/datasets", json=weather("events")).status_code == 409
    events, growth = Set(http, "events"), Set(http, "filestore_growth")
    assert events.patch(retention={"maxAge": "400d"}).json()["retention"] == {"maxAge": "400d"}
    assert events.patch(schema=[{"name": "x", "type": "long"}]).status_code == 403
    assert growth.patch(retention={"maxAge": "1d"}).status_code == 403
    assert events.rows({"occurred_at": "2026-11-15T00:00:00Z"}).status_code == 403


def test_a_list_is_paged_by_name(http: httpx.Client) -> None:
    made = sorted(Set.make(http).slug for _ in range(3))
    seen: list[str] = []
    cursor = None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = http.get(f"{BASE}/datasets", params=params).json()
        assert len(page["items"]) <= 2
        seen += [item["slug"] for item in page["items"]]
        if (cursor := page["nextCursor"]) is None:
            break
    assert seen == sorted(set(seen)) and set(made) <= set(seen)
    assert http.get(f"{BASE}/datasets", params={"cursor": "%"}).status_code == 422


def test_what_a_token_may_not_see_is_as_absent(http: httpx.Client, api: Api) -> None:
    mine, other = Set.make(http), Set.make(http)
    guarded = Set.make(http, readScope="timestore:admin", writeScope="timestore:admin")
    row = {"at": "2026-11-15T10:00:00Z", "station": "a"}
    ingest = other.rows(row).json()["ingestId"]
    limited = api.bearer(*ALL, datasets=[mine.slug])
    with httpx.Client(base_url=api.url, headers=limited) as client:
        assert [i["slug"] for i in client.get(f"{BASE}/datasets").json()["items"]] == [mine.slug]
        unseen, absent = Set(client, other.slug), Set(client, new_slug())
        for one in (unseen, absent):
            answers = [client.get(one.path), one.patch(latenessSeconds=1), one.rows(row)]
            answers += [
                client.delete(one.path),
                client.post(f"{BASE}/datasets", json=weather(one.slug)),
            ]
            assert {a.status_code for a in answers} == {404}, [a.text for a in answers]
        assert client.get(f"{BASE}/ingests/{ingest}").status_code == 404
        assert Set(client, mine.slug).rows(row).status_code == 202
    with httpx.Client(base_url=api.url, headers=api.bearer("timestore:read")) as client:
        assert client.get(guarded.path).status_code == 404
        assert Set(client, mine.slug).rows(row).status_code == 403
        assert client.post(f"{BASE}/datasets", json=weather(new_slug())).status_code == 403
    with httpx.Client(base_url=api.url, headers=api.bearer("timestore:write")) as client:
        assert Set(client, mine.slug).rows(row).status_code == 202
        assert Set(client, guarded.slug).rows(row).status_code == 404
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL, mounts=["m"])) as client:
        assert client.get(f"{BASE}/datasets").json()["items"] == []
