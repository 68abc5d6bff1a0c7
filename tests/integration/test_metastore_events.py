"""Each event type of the metastore: the real action over HTTP, and its row in the log."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import rows, value
from tests.support.metastore import ALL, Meta, new_namespace
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress") as api:
        yield api


@pytest.fixture
def meta(api: Api) -> Iterator[Meta]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=30) as client:
        yield Meta(client, api.database, new_namespace())


def logged(meta: Meta, correlation_id: str, count: int = 1) -> list[dict[str, Any]]:
    query = """SELECT type, source, payload, schema_version FROM bus.workflow_events
        WHERE correlation_id = %s ORDER BY ingress_sequence"""
    wait_until(lambda: len(rows(meta.database, query, correlation_id)) >= count)
    found = rows(meta.database, query, correlation_id)
    assert len(found) == count
    assert {(row["source"], row["schema_version"]) for row in found} == {("metastore.api", 1)}
    assert value(meta.database, "SELECT count(*) FROM bus.dead_letters") == 0
    return found


def correlated() -> dict[str, str]:
    return {"X-Correlation-Id": f"run-{uuid4().hex}"}


def test_record_created(meta: Meta) -> None:
    for key in ("long-way", "quick-way"):
        run = correlated()
        made = meta.create(key, run, metadata={"a": 1, "b": 2}, tags=["t"], owner="ops")
        assert made.status_code == 201 and made.headers["x-correlation-id"] in run.values()
        (found,) = logged(meta, run["X-Correlation-Id"])
        assert found["type"] == "metastore.record.created"
        assert found["payload"] == {
            "namespace": meta.namespace,
            "key": key,
            "version": 1,
            "tags": ["t"],
            "actor": "test",
            "changed": ["metadata.a", "metadata.b", "tags", "owner"],
            "owner": "ops",
        }


def test_record_updated(meta: Meta) -> None:
    meta.put("k", metadata={"a": 1, "b": 2})
    run = correlated()
    meta.patch("k", run, metadata={"a": None, "c": 3}, tags={"add": ["t"]})
    meta.restore("k", 1, run)
    changed, restored = logged(meta, run["X-Correlation-Id"], 2)
    assert changed["type"] == restored["type"] == "metastore.record.updated"
    assert changed["payload"]["changed"] == ["metadata.a", "metadata.c", "tags"]
    assert changed["payload"]["version"] == 2 and "restoredFrom" not in changed["payload"]
    assert restored["payload"]["restoredFrom"] == 1 and restored["payload"]["tags"] == []


def test_record_deleted(meta: Meta) -> None:
    meta.put("k", metadata={"a": 1}, tags=["t"])
    run = correlated()
    meta.delete("k", run)
    meta.restore("k", 1, run)
    meta.purge("k", run)
    soft, back, purged = logged(meta, run["X-Correlation-Id"], 3)
    assert [soft["type"], purged["type"]] == ["metastore.record.deleted"] * 2
    assert soft["payload"]["mode"] == "soft" and soft["payload"]["changed"] == ["deletedAt"]
    assert soft["payload"]["tags"] == ["t"]
    # Who follows the log has to make it again.
    assert back["type"] == "metastore.record.created" and back["payload"]["restoredFrom"] == 1
    assert purged["payload"]["mode"] == "purge" and purged["payload"]["version"] == 4
    assert purged["payload"]["tags"] == purged["payload"]["changed"] == []


def test_a_bulk_call_tells_each_change(meta: Meta) -> None:
    run = correlated()
    items = [{"op": "upsert", "key": f"k{n}", "metadata": {"n": n}} for n in range(700)]
    assert meta.bulk(*items, **run).status_code == 200
    found = logged(meta, run["X-Correlation-Id"], 700)
    assert {row["payload"]["key"] for row in found} == {f"k{n}" for n in range(700)}


def test_the_largest_change_still_fits_an_event(meta: Meta) -> None:
    """Names and tags as long and as many as they may be, none of them ASCII."""
    run = correlated()
    tags = ["\U0001f600" * 30 + str(n) for n in range(500)]
    metadata = {"\U0001f600" * 100 + str(n): n for n in range(400)}
    owner = key = "\U0001f600" * 200
    assert meta.put(key, run, metadata=metadata, tags=tags, owner=owner).status_code == 201
    (found,) = logged(meta, run["X-Correlation-Id"])
    assert found["payload"]["changed"] == ["metadata", "tags", "owner"]
    assert len(found["payload"]["tags"]) == 500


def test_what_is_refused_tells_nothing(meta: Meta) -> None:
    run = correlated()
    meta.put("k", metadata={"a": 1})
    assert meta.create("k", run).status_code == 409
    assert meta.put("k", {**run, "If-Match": '"7"'}, metadata={}).status_code == 412
    assert meta.put("k", run, metadata={"a": 1}).status_code == 200
    meta.put("last", run)
    (found,) = logged(meta, run["X-Correlation-Id"])
    assert found["payload"]["key"] == "last"
