"""Operating the filestore sync: over HTTP and the command line, in health, readiness, metrics and
the ledger; all in one platform without Redis."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from tests.support.api import Api, own_api, own_database, serving
from tests.support.database import rows
from tests.support.nodes import NAMESPACE, records, settled, tell, told, view
from tests.support.parts import part
from tests.support.waiting import wait_until
from tristore.cli import app
from tristore.config import INLINE, EventsSettings, Settings
from tristore.events.payload import Payload
from tristore.events.payloads import (
    FilestoreNodeCreated,
    FilestoreNodeDeleted,
    FilestoreNodeUpdated,
)

SYNC = "/metastore/v1/sync"
SCOPES = ("metastore:admin", "metastore:read", "events:read", "events:admin")


@pytest.fixture(scope="module")
def api(server_url: str) -> Iterator[Api]:
    with own_api(server_url, INLINE, workers="relay,sync") as api:
        yield api


@pytest.fixture(scope="module")
def admin(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES), timeout=30) as client:
        yield client


def send(api: Api, *payloads: Payload) -> None:
    asyncio.run(tell(api.database, *payloads))


def apply(api: Api, *payloads: Payload) -> None:
    async def whole() -> None:
        await tell(api.database, *payloads)
        await settled(api.database)

    asyncio.run(whole())


def ask(client: httpx.Client, path: str = SYNC, **params: Any) -> dict[str, Any]:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def command(api: Api, token: str, *words: str) -> dict[str, Any]:
    argv = ["meta", "sync", *words, "--url", api.url, "--token", token, "--json"]
    done = CliRunner().invoke(app, argv)
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_status_health_readiness_and_metrics_tell_the_same(api: Api, admin: httpx.Client) -> None:
    apply(api, told(FilestoreNodeCreated, "s1", 1))
    wait_until(lambda: ask(admin)["lag"] == 0)
    found = ask(admin)
    assert (found["state"], found["namespace"], found["refused"]) == ("on", NAMESPACE, 0)
    assert (found["lastError"], found["sequence"]) == (None, found["lastSequence"])
    health = ask(admin, "/admin/event-health")
    assert health["sync"]["state"] == "on"
    (consumer,) = [c for c in health["consumers"] if c["consumer"] == "tristore.metastore.sync"]
    assert (consumer["lag"], consumer["lastError"]) == (0, None)
    assert health["parts"]["sync"] >= 1
    wait_until(lambda: ask(admin, "/readyz")["checks"].get("sync") == "ok")
    metrics = admin.get("/metrics").text
    assert "tristore_sync_refused 0" in metrics
    assert "tristore_sync_paused 0" in metrics
    assert 'tristore_up{part="sync"} 1' in metrics


def test_a_paused_sync_writes_nothing_and_goes_on_when_resumed(
    api: Api, admin: httpx.Client
) -> None:
    token = api.bearer(*SCOPES)["Authorization"].removeprefix("Bearer ")
    assert command(api, token, "pause")["state"] == "paused"
    assert admin.post(f"{SYNC}/pause").json()["state"] == "paused"  # twice is once
    send(api, told(FilestoreNodeCreated, "p1", 1))
    wait_until(lambda: ask(admin)["lag"] > 0)
    refused = admin.post(f"{SYNC}/rebuild")
    assert refused.status_code == 409 and "resume" in refused.json()["detail"]
    assert "p1" not in records(api.database)
    assert command(api, token, "status")["pausedBy"] == "test"
    assert command(api, token, "resume")["state"] == "on"
    wait_until(lambda: "p1" in records(api.database))


def test_one_command_rebuilds(api: Api, admin: httpx.Client) -> None:
    token = api.bearer(*SCOPES)["Authorization"].removeprefix("Bearer ")
    apply(api, *(told(FilestoreNodeCreated, f"r{n}", 1) for n in range(20)))
    apply(api, told(FilestoreNodeDeleted, "r3", 2))
    before = records(api.database)
    with psycopg.connect(api.database, autocommit=True) as conn:
        conn.execute("DELETE FROM metastore.records")
        conn.execute("DELETE FROM metastore.record_audits")
    done = command(api, token, "rebuild")
    assert (done["state"], done["unknown"]) == ("done", 0)
    assert done["changed"] >= len(before)
    assert records(api.database) == before
    again = CliRunner().invoke(
        app, ["meta", "sync", "rebuild", "--url", api.url, "--token", token], terminal_width=200
    )
    assert again.exit_code == 0
    assert "0 records changed" in again.stdout


def test_what_rules_refuse_is_listed_and_tried_again(api: Api, admin: httpx.Client) -> None:
    rules = {"allowedTags": ["gold"], "requireOwner": True}
    path = f"/metastore/v1/namespaces/{NAMESPACE}"
    made = admin.put(path, json=rules)
    assert made.status_code in (200, 201), made.text
    apply(api, *(told(FilestoreNodeCreated, f"x{n}", 1) for n in range(3)))
    wait_until(lambda: ask(admin)["refused"] == 3)
    page = ask(admin, f"{SYNC}/refusals", limit=2)
    rest = ask(admin, f"{SYNC}/refusals", limit=2, cursor=page["nextCursor"])
    assert [i["key"] for i in page["items"] + rest["items"]] == ["x0", "x1", "x2"]
    assert rest["nextCursor"] is None
    assert page["items"][0]["filestore"] == view("x0", 1)
    assert page["items"][0]["errors"][0]["path"] == "/owner"
    assert ask(admin, "/admin/event-health")["sync"]["refused"] == 3
    column = ask(admin, "/admin/completeness")["metastore"]
    assert (column["refused"], column["missing"]) == (3, 0)
    assert admin.post(f"{SYNC}/retry").json()["retrying"] == 3
    assert admin.put(path, json={}).status_code == 200
    wait_until(lambda: ask(admin)["refused"] == 0)
    assert {"x0", "x1", "x2"} <= records(api.database).keys()


def test_the_ledger_follows_each_node_event_into_its_record(api: Api, admin: httpx.Client) -> None:
    apply(api, told(FilestoreNodeCreated, "l1", 1), told(FilestoreNodeUpdated, "l1", 2))
    found = ask(admin, "/admin/completeness")
    assert found["verdict"] == "closed, 0 missing"
    column = found["metastore"]
    assert column["state"] == "on"
    assert column["nodeEvents"] == column["inView"] >= 2
    assert sum(row["metastore"]["nodeEvents"] for row in found["minutes"]) == column["nodeEvents"]

    admin.post(f"{SYNC}/pause")
    send(api, told(FilestoreNodeUpdated, "l1", 3))
    wait_until(lambda: ask(admin, "/admin/completeness")["metastore"]["waiting"] == 1)
    verdict = ask(admin, "/admin/completeness")["verdict"]
    assert verdict == "open, 0 missing, 0 in flight, 1 not in the metastore yet"
    admin.post(f"{SYNC}/resume")
    wait_until(lambda: ask(admin, "/admin/completeness")["verdict"] == "closed, 0 missing")

    with psycopg.connect(api.database, autocommit=True) as conn:
        conn.execute("DELETE FROM metastore.records WHERE key = 'l1'")
    broken = ask(admin, "/admin/completeness")
    assert broken["verdict"] == "broken, 3 missing"
    ids = rows(api.database, "SELECT id FROM bus.workflow_events WHERE payload ->> 'nodeId' = 'l1'")
    assert sorted(broken["missingIds"]) == sorted(row["id"] for row in ids)
    admin.post(f"{SYNC}/rebuild")
    wait_until(lambda: ask(admin, "/admin/completeness")["verdict"] == "closed, 0 missing")


def test_only_who_may_see_the_records_sees_and_moves_their_sync(api: Api) -> None:
    reader = api.bearer("metastore:read")
    stranger = api.bearer("metastore:read", "metastore:admin", namespaces=["other"])
    assert httpx.get(api.url + SYNC, headers=reader).status_code == 200
    for action in ("pause", "resume", "retry", "rebuild"):
        assert httpx.post(f"{api.url}{SYNC}/{action}", headers=reader).status_code == 403
        assert httpx.post(f"{api.url}{SYNC}/{action}", headers=stranger).status_code == 404
    assert httpx.get(api.url + SYNC, headers=stranger).status_code == 404
    for cursor in ("x", "W10", "WyIiLCJyZWZ1c2FscyIsM10"):
        answer = httpx.get(f"{api.url}{SYNC}/refusals?cursor={cursor}", headers=reader)
        assert answer.status_code == 422, answer.text


def test_a_sync_that_stands_still_or_is_off_is_told(server_url: str) -> None:
    with ExitStack() as stack:
        database_url = stack.enter_context(own_database(server_url))
        events = EventsSettings(poll_seconds=0.2, lease_seconds=2)
        settings = Settings(database_url=database_url, redis_url=INLINE, events=events)
        api = stack.enter_context(serving(settings, workers="relay"))
        client = stack.enter_context(httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES)))
        assert ask(client)["state"] == "never started"
        assert "sync" not in client.get("/readyz").json()["checks"]
        with part(settings, "work", "sync"):
            apply(api, told(FilestoreNodeCreated, "a", 1))
        send(api, told(FilestoreNodeUpdated, "a", 2))
        wait_until(lambda: "stuck" in client.get("/readyz").json()["checks"].get("sync", ""))
        off = {"TRISTORE_METASTORE__FILESTORE_SYNC": "false"}
        with serving(settings, **off) as other:
            with httpx.Client(base_url=other.url, headers=api.bearer(*SCOPES)) as client:
                assert ask(client) == {"state": "off"}
                assert ask(client, "/admin/event-health")["sync"] == {"state": "off"}
                ledger = ask(client, "/admin/completeness")
                assert ledger["metastore"] == {"state": "off"}
                assert ledger["verdict"] == "closed, 0 missing"
                assert {row["metastore"]["state"] for row in ledger["minutes"]} == {"off"}
                assert "sync" not in client.get("/readyz").json()["checks"]
                refused = client.post(f"{SYNC}/rebuild")
                assert refused.status_code == 409
                assert "FILESTORE_SYNC" in refused.json()["detail"]
