"""JSON that readers understand differently (S25-S30, S32), to the publishing route and to one
whose body the framework reads: refused at the door, nothing stored."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import value
from tests.support.waiting import wait_until

KEYS = ",".join(f'"{n:x}":0' for n in range(100_000))
BAD = {
    "NaN": '{"a":NaN}',
    "-Infinity": '{"a":-Infinity}',
    "Infinity": "[Infinity]",
    "1e999": '{"a":1e999}',
    "duplicate key": '{"scope":"a","scope":"b"}',
    "duplicate key, escaped": '{"a":1,"\\u0061":2}',
    "NUL in a value": '{"a":"x\\u0000y"}',
    "NUL in a key": '{"a\\u0000":1}',
    "lone surrogate": '{"a":"\\ud800"}',
    "lone surrogate as a key": '{"\\udfff":1}',
    "surrogates in the wrong order": '{"a":"\\udc00\\ud800"}',
    "5,000 digits": '{"a":' + "9" * 5000 + "}",
    "beyond int64": '{"a":9223372036854775808}',
    "depth 100,000": "[" * 100_000,
    "depth 900": '{"a":' + "[" * 900 + "]" * 900 + "}",
    "depth 80": '{"a":' + "[" * 80 + "]" * 80 + "}",
    "100,000 keys": "{" + KEYS + "}",
    "a key of 1 MB": '{"' + "k" * 1_000_000 + '":1}',
    "not closed": '{"a":1',
    "two documents": "{}{}",
    "a comment": '{"a":1/**/}',
    "a raw control character": '{"a":"\n"}',
}


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress") as api:
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    headers = api.bearer("events:publish", "timestore:read", "events:read")
    headers["Content-Type"] = "application/json"
    with httpx.Client(base_url=api.url, headers=headers) as client:
        yield client


@pytest.mark.parametrize("name", BAD)
def test_bad_json_is_refused_at_the_door(api: Api, client: httpx.Client, name: str) -> None:
    before = api.stored()
    payload = f'{{"type":"a.b.c","source":"s","payload":{BAD[name]}}}'
    query = f'{{"sql":"SELECT 1","x":{BAD[name]}}}'
    for path, body in (("/v1/events", payload), ("/timestore/v1/sql", query)):
        answer = client.post(path, content=body.encode())
        assert answer.status_code == 422, (path, answer.text[:200])
        assert answer.headers["content-type"] == "application/problem+json"
        assert len(answer.content) < 2000
    assert api.stored() == before


@pytest.mark.parametrize("body", [b"\xff\xfe", b"\xc0\x80", b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}"])
def test_bytes_that_are_no_utf8_are_refused(api: Api, client: httpx.Client, body: bytes) -> None:
    before = api.stored()
    for path in ("/v1/events", "/timestore/v1/sql"):
        assert client.post(path, content=body).status_code == 422
    assert api.stored() == before


def test_large_integers_stay_exact_to_the_table_and_back(api: Api, client: httpx.Client) -> None:
    exact = {"a": 2**53 + 1, "b": 2**63 - 1, "c": -(2**63)}
    event = {"id": "exact", "type": "a.b.c", "source": "s", "payload": exact}
    assert client.post("/v1/events", json=event).status_code == 202
    query = "SELECT payload::text FROM bus.workflow_events WHERE id = 'exact'"
    assert json.loads(wait_until(lambda: value(api.database, query))) == exact
    with client.stream("GET", "/v1/events/stream?since=0") as response:
        frames = (line[6:] for line in response.iter_lines() if line.startswith("data: "))
        event = next(f["event"] for f in map(json.loads, frames) if f["kind"] == "event")
    assert event["payload"] == exact
