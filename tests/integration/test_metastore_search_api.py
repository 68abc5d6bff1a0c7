"""Searches over HTTP: lines and trees, rights, refusals, and every example of the page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import value
from tests.support.searches import declare
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as api:
        writer = api.bearer("metastore:write")
        items = [
            {"key": "a", "metadata": {"size": 12_000_000, "q": {"n": 1}}, "owner": "ops"},
            {"key": "b", "metadata": {"size": 5, "q": {"n": 2}}, "tags": ["raw", "tmp"]},
            {"key": "c", "metadata": {"title": "Red apple"}, "tags": ["raw"], "owner": "ops"},
        ]
        for namespace in ("one", "two"):
            for item in items:
                answer = httpx.post(
                    f"{api.url}/metastore/v1/records",
                    json={"namespace": namespace, **item},
                    headers=writer,
                )
                assert answer.status_code == 201, answer.text
        yield api


def ask(api: Api, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    url = f"{api.url}/metastore/v1/records/search"
    return httpx.post(url, json=body, headers=headers or api.bearer("metastore:read"), timeout=30)


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("owner:ops", "ac"),
        ("tag:raw -tag:tmp", "c"),
        ("metadata.size>10MB", "a"),
        ("(metadata.size<10 OR apple) tag:raw", "bc"),
        ('"red apple"', "c"),
        ("key:b*", "b"),
        ("updated>2020-01-01 -owner:*", "b"),
        ("nowhere", ""),
    ],
)
def test_a_line_finds_records(api: Api, line: str, keys: str) -> None:
    found = ask(api, namespace="one", q=line).json()
    assert [item["key"] for item in found["items"]] == list(keys)
    assert found["nextCursor"] is None


def test_a_page_has_the_asked_fields_and_goes_on(api: Api) -> None:
    asked = {
        "namespace": "one",
        "filter": {"field": "metadata.size", "op": "exists"},
        "sort": [{"field": "metadata.size", "direction": "desc"}],
        "fields": ["metadata.q.n", "version"],
        "limit": 1,
        "count": True,
    }
    first = ask(api, **asked).json()
    assert first["items"] == [
        {"namespace": "one", "key": "a", "version": 1, "metadata": {"q": {"n": 1}}}
    ]
    assert first["count"] == 2
    second = ask(api, **asked, cursor=first["nextCursor"]).json()
    assert [item["key"] for item in second["items"]] == ["b"]
    assert second["nextCursor"] is None
    whole = ask(api, namespace="one", q="key:a").json()["items"][0]
    url = f"{api.url}/metastore/v1/records/one/a"
    assert whole == httpx.get(url, headers=api.bearer("metastore:read")).json()


def test_a_token_finds_only_what_it_may_see(api: Api) -> None:
    limited = api.bearer("metastore:read", namespaces=["two", "gone"])
    found = ask(api, limited).json()["items"]
    assert {item["namespace"] for item in found} == {"two"} and len(found) == 3
    everywhere = {"or": [{"field": "namespace", "op": "eq", "value": "one"}, {"and": []}]}
    found = ask(api, limited, filter=everywhere).json()["items"]
    assert {item["namespace"] for item in found} == {"two"}
    refused, absent = ask(api, limited, namespace="one"), ask(api, limited, namespace="none")
    bodies = [{**r.json(), "requestId": None} for r in (refused, absent)]
    assert refused.status_code == 404 and bodies[0] == bodies[1]
    assert ask(api, limited, namespace=["two", "one"]).status_code == 404
    assert len(ask(api, namespace=["two", "one"]).json()["items"]) == 6
    assert len(ask(api, api.bearer("metastore:read")).json()["items"]) == 6
    assert ask(api, api.bearer("metastore:write")).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {"namespace": "A"},
        {"namespace": "one/../two"},
        {"namespace": []},
        {"namespace": 1},
        {"filter": {"field": "metadata.**", "op": "exists"}},
        {"filter": {"field": "$.a", "op": "exists"}},
        {"filter": {"field": "metadata[*]", "op": "exists"}},
        {"filter": []},
        {"filter": {"field": "version", "op": "eq", "value": "x"}},
        {"q": "owner:"},
        {"q": 5},
        {"sort": [{"field": "tags"}]},
        {"sort": [{"field": "key", "direction": "up"}]},
        {"sort": "key"},
        {"fields": ["nothing"]},
        {"limit": 0},
        {"limit": 1001},
        {"limit": True},
        {"cursor": "garbage"},
        {"filters": {}},
        {"count": "many"},
    ],
)
def test_bad_input_is_a_clear_refusal(api: Api, body: dict[str, Any]) -> None:
    answer = ask(api, **body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.json()["detail"]) > 5


def test_a_wide_and_deep_filter_is_answered(api: Api) -> None:
    tree: dict[str, Any] = {"or": [_some_leaf(number) for number in range(990)]}
    for _ in range(6):
        tree = {"not": tree}
    answer = ask(api, filter=tree, namespace="one")
    assert answer.status_code == 200 and len(answer.json()["items"]) == 1
    assert ask(api, filter={"not": {"not": tree}}).status_code == 422


def _some_leaf(number: int) -> dict[str, Any]:
    return {
        "field": ["metadata", "q", "n" if number == 7 else f"n{number}"],
        "op": "eq",
        "value": 2,
    }


def test_a_declared_index_is_made_by_the_running_platform(api: Api) -> None:
    url, admin = f"{api.url}/metastore/v1/namespaces/one", api.bearer("metastore:admin")
    answer = httpx.put(url, json={"indexes": ["metadata.size"]}, headers=admin)
    assert answer.status_code in (200, 201), answer.text
    query = "SELECT count(*) FROM pg_indexes WHERE starts_with(indexname, 'declared_')"
    wait_until(lambda: value(api.database, query) == 2)
    assert [i["key"] for i in ask(api, namespace="one", q="metadata.size<9").json()["items"]] == [
        "b"
    ]


PAGE = (Path(__file__).parents[2] / "docs" / "metastore-search.md").read_text("utf-8")
EXAMPLES = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_run(api: Api) -> None:
    declare(api.database, "readings")
    declare(api.database, "filestore")
    assert len(EXAMPLES) > 6
    for example in EXAMPLES:
        answer = ask(api, **json.loads(example))
        assert answer.status_code == 200, (example, answer.text)
    lines = re.findall(r"^\| (`.*) \| ", PAGE.partition("## The one-line syntax")[2], re.MULTILINE)
    found = [line for cell in lines for line in re.findall(r"`([^`]+)`", cell)]
    assert len(found) > 12
    for line in found:
        assert ask(api, q=line).status_code == 200, line
