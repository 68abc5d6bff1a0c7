"""The documents in which the platform describes itself, as they are served."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.api import Api, own_api
from tristore.events.asyncapi import catalogue


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as api:
        yield api


def test_asyncapi_tells_of_the_catalogue_and_of_what_was_registered(api: Api) -> None:
    operator = api.bearer("events:admin")
    path = f"{api.url}/admin/event-schemas"
    for type, title, status in (
        ("mine.thing.made", "old", "active"),
        ("mine.thing.made", "new", "active"),
        ("mine.thing.gone", "gone", "disabled"),
    ):
        schema = {"type": "object", "title": title}
        body = {"type": type, "schema": schema, "status": status}
        assert httpx.post(path, json=body, headers=operator).status_code == 201
    answer = httpx.get(f"{api.url}/asyncapi.json", headers=api.bearer())
    document = answer.json()
    expected = {entry.type for entry in catalogue()} | {"mine.thing.made"}
    assert set(document["components"]["messages"]) == expected
    assert document["components"]["schemas"]["mine.thing.made"]["title"] == "new"
    assert document["channels"]["ingress"]["address"].endswith(api.settings.events.queue)


def test_openapi_tells_of_every_route_and_how_to_get_in(api: Api) -> None:
    document = httpx.get(f"{api.url}/openapi.json", headers=api.bearer()).json()
    assert {"/v1/events", "/v1/events/stream", "/v1/session", "/v1/tickets"} <= set(
        document["paths"]
    )
    assert document["security"] == [{"bearer": []}, {"session": []}]
    assert set(document["components"]["securitySchemes"]) == {"bearer", "session"}


def test_the_reference_loads_only_what_this_server_sends(api: Api) -> None:
    headers = api.bearer()
    for path in ("/docs", "/docs/page.js", "/docs/page.css", "/"):
        answer = httpx.get(f"{api.url}{path}", headers=headers)
        assert answer.status_code == 200
        assert "://" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"
