"""The schema registry from outside: versions, verdicts, and schemas that hold once answered."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from bullmq import Queue

from tests.support.api import Api, own_api, serving
from tests.support.command import answer, tristore
from tests.support.database import rows, value
from tests.support.waiting import until, wait_until
from tristore.events import catalogue

ADMIN = "/admin/event-schemas"
Schema = dict[str, Any]


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress") as api:
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    scopes = ("events:admin", "events:publish", "events:read")
    with httpx.Client(base_url=api.url, headers=api.bearer(*scopes), timeout=30) as client:
        yield client


def of(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def register(client: httpx.Client, type: str, schema: Schema, **more: Any) -> httpx.Response:
    return client.post(ADMIN, json={"type": type, "schema": schema, **more})


def publish(client: httpx.Client, type: str, payload: Any, **more: Any) -> httpx.Response:
    event = {"type": type, "source": "test", "payload": payload, **more}
    return client.post("/v1/events", json=event)


def test_versions_grow_repeat_and_refuse_what_breaks(client: httpx.Client) -> None:
    type = "shop.order.placed"
    first = register(client, type, of("n", n=WHOLE))
    assert (first.status_code, first.json()["version"]) == (201, 1)
    assert first.json()["createdBy"].startswith("test (")
    again = register(client, type, of("n", n=WHOLE))
    assert (again.status_code, again.json()["version"]) == (200, 1)
    second = register(client, type, of("n", n=WHOLE, note=TEXT))
    assert (second.status_code, second.json()["version"]) == (201, 2)

    broken = register(client, type, of("n", "who", n=WHOLE, who=TEXT))
    assert broken.status_code == 409
    body = broken.json()
    assert broken.headers["content-type"] == "application/problem+json"
    assert "/who is now required (breaks backward)" in body["detail"]
    assert '"compatibility": "none"' in body["detail"]
    (change,) = [c for c in body["verdict"]["changes"] if c["breaks"] == "backward"]
    assert change["path"] == "/who" and change["example"] == {"n": 0}
    # The example is what it says: fine for the version in use.
    assert publish(client, type, change["example"]).status_code == 202

    forced = register(client, type, of("n", "who", n=WHOLE, who=TEXT), compatibility="none")
    assert (forced.status_code, forced.json()["version"]) == (201, 3)
    assert register(client, type, of(n=WHOLE), version=2).status_code == 409
    assert register(client, type, of(n=WHOLE), version=9, compatibility="none").status_code == 201

    shown = client.get(f"{ADMIN}/{type}").json()
    assert (shown["version"], shown["schema"]) == (9, of(n=WHOLE))
    assert [one["version"] for one in shown["versions"]] == [9, 3, 2, 1]
    assert client.get(f"{ADMIN}/{type}/1").json()["schema"] == of("n", n=WHOLE)
    missing = client.get(f"{ADMIN}/{type}/4")
    assert missing.status_code == 404 and "known: 9, 3, 2, 1" in missing.json()["detail"]


def test_forward_and_full_protect_the_other_direction(client: httpx.Client) -> None:
    type = "shop.parcel.sent"
    assert register(client, type, of("n", n=WHOLE)).status_code == 201
    loose = of(n=WHOLE)
    for mode in ("forward", "full"):
        refused = register(client, type, loose, compatibility=mode)
        assert refused.status_code == 409 and "is no longer required" in refused.json()["detail"]
        assert refused.json()["verdict"]["backward"] is True
    assert register(client, type, loose).status_code == 201


def test_a_check_tells_everything_and_registers_nothing(client: httpx.Client) -> None:
    type = "shop.invoice.paid"
    register(client, type, of("sum", sum=WHOLE))
    body = {"type": type, "schema": of("sum", sum={"type": "number"}, tip=WHOLE)}
    verdict = client.post(f"{ADMIN}/check", json=body).json()
    assert (verdict["compatible"], verdict["backward"], verdict["forward"]) == (True, True, False)
    assert verdict["against"] == 1
    breaks = {c["path"]: (c["breaks"], c["example"]) for c in verdict["changes"]}
    assert breaks == {"/sum": ("forward", {"sum": 1.5}), "/tip": (None, None)}
    strict = client.post(f"{ADMIN}/check", json={**body, "mode": "full"}).json()
    assert strict["compatible"] is False
    unknown = client.post(f"{ADMIN}/check", json={**body, "type": "shop.nothing.known"}).json()
    assert (unknown["compatible"], unknown["against"]) == (True, None)
    assert client.get(f"{ADMIN}/shop.nothing.known").status_code == 404
    assert len(client.get(f"{ADMIN}/{type}").json()["versions"]) == 1


def test_the_list_pages_over_catalogue_and_registered_alike(client: httpx.Client) -> None:
    for number in range(5):
        register(client, f"aaa.page.made{number}", of(n=WHOLE))
    register(client, "aaa.page.made1", of(n=WHOLE, more=TEXT))
    seen, cursor = [], None
    while True:
        params = {"limit": 4, **({"cursor": cursor} if cursor else {})}
        page = client.get(ADMIN, params=params).json()
        seen += [(item["type"], item["version"], item["origin"]) for item in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
        assert len(page["items"]) == 4
    assert seen == sorted(set(seen))
    shipped = {(e.type, e.version, "catalogue") for e in catalogue.entries()}
    assert shipped < set(seen) and ("aaa.page.made1", 2, "registered") in seen
    found = client.get(ADMIN, params={"type": "aaa.page.*"}).json()["items"]
    assert [item["type"] for item in found[:2]] == ["aaa.page.made0", "aaa.page.made1"]
    assert len(found) == 6
    one = client.get(ADMIN, params={"type": "filestore.node.moved"}).json()["items"]
    assert [item["origin"] for item in one] == ["catalogue"]
    assert client.get(ADMIN, params={"cursor": "bm90IG91cnM"}).status_code == 422


def test_a_type_of_the_platform_stays_as_it_is(client: httpx.Client) -> None:
    refused = register(client, "filestore.node.moved", of(n=WHOLE), compatibility="none")
    assert refused.status_code == 409 and "ships with the platform" in refused.json()["detail"]
    status = {"status": "disabled"}
    assert client.patch(f"{ADMIN}/filestore.node.moved/1", json=status).status_code == 409


async def test_a_schema_holds_for_every_event_that_is_queued_after_the_answer(
    api: Api, client: httpx.Client
) -> None:
    """Straight into the queue, past the door: only ingress can refuse."""
    queue = Queue(api.settings.events.queue, {"connection": str(api.settings.redis_url)})
    for number in range(40):
        type = f"queue.thing.made{number}"
        assert register(client, type, of("n", n=WHOLE)).status_code == 201
        bad = {"id": f"bad-{number}", "type": type, "source": "q", "payload": {"n": "one"}}
        good = {"id": f"good-{number}", "type": type, "source": "q", "payload": {"n": 1}}
        await queue.add("events", {"events": [bad, {**good, "schemaVersion": 1}]})
        # And a new version a moment later, for events that name none.
        assert register(client, type, of("n", "m", n=WHOLE, m=TEXT), compatibility="none")
        await queue.add("event", {**good, "id": f"old-{number}"})
    await queue.close()

    async def arrived() -> bool:
        count = "SELECT count(*) FROM bus.{} WHERE type LIKE 'queue.thing.%%'"
        stored = value(api.database, count.format("workflow_events"))
        return bool(stored + value(api.database, count.format("dead_letters")) == 120)

    await until(arrived)
    query = "SELECT id, schema_version FROM bus.workflow_events WHERE type LIKE 'queue.thing.%%'"
    stored = {row["id"]: row["schema_version"] for row in rows(api.database, query)}
    assert {key for key in stored if not key.startswith("good-")} == set()
    assert len(stored) == 40
    letters = rows(api.database, "SELECT event_id, reason, errors FROM bus.dead_letters")
    refused = {row["event_id"]: row for row in letters}
    assert all(refused[f"bad-{n}"]["reason"] == "schema_invalid" for n in range(40))
    assert all("m" in refused[f"old-{n}"]["errors"][0]["message"] for n in range(40))


def test_every_api_process_learns_and_the_door_never_refuses_by_an_old_schema(
    api: Api, client: httpx.Client
) -> None:
    with serving(api.settings) as second:
        headers = dict(client.headers)
        with httpx.Client(base_url=second.url, headers=headers, timeout=30) as other:
            for number in range(10):
                type = f"door.thing.made{number}"
                assert register(client, type, of("n", n=WHOLE)).status_code == 201
                register(client, type, of("n", n={"type": ["integer", "string"]}))
                # Fine for the version registered last; the second process was not told by us.
                sent = publish(other, type, {"n": "one"}, schemaVersion=2)
                assert sent.status_code == 202, sent.text
                sent = publish(other, type, {"n": "two"})
                assert sent.status_code == 202, sent.text
            wait_until(lambda: publish(other, "door.thing.made9", {"n": []}).status_code == 422)


def stored_version(api: Api, event_id: str) -> Any:
    query = "SELECT schema_version FROM bus.workflow_events WHERE id = %s"
    return wait_until(lambda: rows(api.database, query, event_id))[0]["schema_version"]


def test_status_decides_which_events_a_version_is_for(api: Api, client: httpx.Client) -> None:
    type = "status.thing.made"
    register(client, type, of("n", n=WHOLE))
    register(client, type, of("n", n=WHOLE, m=TEXT))

    def switch(version: int, status: str) -> None:
        changed = client.patch(f"{ADMIN}/{type}/{version}", json={"status": status})
        assert changed.json()["status"] == status

    assert publish(client, type, {"n": 1}, id="st-1").status_code == 202
    assert stored_version(api, "st-1") == 2
    switch(2, "deprecated")
    publish(client, type, {"n": 1}, id="st-2")
    publish(client, type, {"n": 1}, id="st-3", schemaVersion=2)
    assert (stored_version(api, "st-2"), stored_version(api, "st-3")) == (1, 2)
    switch(1, "deprecated")
    unnamed = publish(client, type, {"n": 1})
    assert unnamed.status_code == 422 and "name one of these: 1, 2" in unnamed.text
    switch(2, "disabled")
    gone = publish(client, type, {"n": 1}, schemaVersion=2)
    assert gone.status_code == 422 and "no version 2 in use; known: 1" in gone.text
    switch(1, "disabled")
    # As if nothing had been registered.
    assert publish(client, type, {"n": "anything"}, id="st-4").status_code == 202
    assert stored_version(api, "st-4") is None
    switch(1, "active")
    assert publish(client, type, {"n": "anything"}).status_code == 422
    assert client.patch(f"{ADMIN}/{type}/7", json={"status": "active"}).status_code == 404
    assert client.patch(f"{ADMIN}/{type}/1", json={"status": "gone"}).status_code == 422


HOSTILE = [
    {"$ref": "http://127.0.0.1:{port}/schema.json"},
    {"$ref": "file:///etc/passwd"},
    {"$schema": "http://127.0.0.1:{port}/draft"},
    {"$id": "http://127.0.0.1:{port}/", "properties": {"a": {"$ref": "b"}}},
    {"$ref": "#"},
    {"properties": {"a": {"pattern": "(?=x)y"}}},
    {"properties": {"a": {"pattern": "a{100000}"}}},
    {"properties": {"a": {"uniqueItems": True}}},
    {"properties": {"a": {"enum": ["x" * 70_000]}}},
    {"type": "nonsense"},
    {"properties": []},
]


def test_a_hostile_schema_is_refused_reaches_nothing_and_leaves_nothing(
    api: Api, client: httpx.Client
) -> None:
    before = api.rows("event_schemas")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        for hostile in HOSTILE:
            schema = json.loads(json.dumps(hostile).replace("{port}", str(port)))
            body = {"type": "evil.thing.made", "schema": schema}
            for path in (ADMIN, f"{ADMIN}/check"):
                refused = client.post(path, json=body)
                assert refused.status_code == 422, (hostile, refused.text)
                assert refused.headers["content-type"] == "application/problem+json"
                assert refused.json()["errors"][0]["message"]
        with pytest.raises(TimeoutError):
            server.accept()
    assert api.rows("event_schemas") == before


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"type":"a.b.c"}',
        b'{"type":"Not A Type","schema":{}}',
        b'{"type":"a.b.c","schema":{},"schema":{}}',
        b'{"type":"a.b.c","schema":{"x":"\\u0000"}}',
        b'{"type":"a.b.c","schema":true}',
        b'{"type":"a.b.c","schema":{},"version":0}',
        b'{"type":"a.b.c","schema":{},"version":true}',
        b'{"type":"a.b.c","schema":{},"compatibility":"some"}',
        b'{"type":"a.b.c","schema":{},"surprise":1}',
        b'{"type":"a.b.c","schema":' + b'{"not":' * 70 + b"{}" + b"}" * 70 + b"}",
    ],
)
def test_a_malformed_registration_is_a_422_that_says_why(client: httpx.Client, body: bytes) -> None:
    refused = client.post(ADMIN, content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 422, refused.text
    assert refused.headers["content-type"] == "application/problem+json"


def test_only_administrators_see_and_change_schemas(api: Api) -> None:
    weak = api.bearer("events:read", "events:publish")
    limited = api.bearer("events:admin", mounts=["m"])
    body = {"type": "weak.thing.made", "schema": {}}
    for headers in (weak, limited):
        with httpx.Client(base_url=api.url, headers=headers) as client:
            assert client.get(ADMIN).status_code == 403
            assert client.post(ADMIN, json=body).status_code == 403
            assert client.post(f"{ADMIN}/check", json=body).status_code == 403
            assert client.get(f"{ADMIN}/filestore.node.moved").status_code == 403
            status = {"status": "disabled"}
            assert client.patch(f"{ADMIN}/shop.order.placed/1", json=status).status_code == 403


def test_the_command_line_registers_checks_and_shows(api: Api, tmp_path: Path) -> None:
    token = api.bearer("events:admin")["Authorization"].removeprefix("Bearer ")
    where = {"TRISTORE_URL": api.url, "TRISTORE_TOKEN": token}
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(of("n", n=WHOLE)))
    bad.write_text(json.dumps(of("n", "m", n=WHOLE, m=TEXT)))

    def run(*argv: str) -> Any:
        return tristore(api.settings, "schemas", *argv, **where)

    made = answer(api.settings, "schemas", "register", "cli.thing.made", str(good), **where)
    assert (made["version"], made["status"]) == (1, "active")
    assert "version 1 is active" in run("register", "cli.thing.made", str(good)).stdout
    refused = run("register", "cli.thing.made", str(bad))
    assert refused.returncode == 1 and len(refused.stderr.splitlines()) == 1
    assert "/m is now required" in refused.stderr
    checked = run("check", "cli.thing.made", str(bad))
    assert checked.returncode == 1 and "is now required" in checked.stdout
    assert '{"n": 0}' in checked.stdout
    assert run("check", "cli.thing.made", str(bad), "--mode", "forward").returncode == 0
    shown = run("show", "cli.thing.made")
    assert json.loads(shown.stdout) == of("n", n=WHOLE)
    listed = answer(api.settings, "schemas", "list", "--type", "cli.*", **where)
    assert [item["type"] for item in listed["items"]] == ["cli.thing.made"]
    assert "filestore.node.moved" in run("list").stdout
    (tmp_path / "twice.json").write_text('{"a":1,"a":2}')
    for wrong in ("nowhere.json", "twice.json"):
        failed = run("check", "cli.thing.made", str(tmp_path / wrong))
        assert failed.returncode == 1 and len(failed.stderr.splitlines()) == 1
    assert run("show").returncode == 2
    assert run("check", "cli.thing.made", str(good), "--mode", "some").returncode == 2
