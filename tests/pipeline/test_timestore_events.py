"""Each event the timestore sends: the real action, asked for over HTTP, and its row in the log."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.micro_batches import catch_up
from tests.support.api import Api, own_api
from tests.support.database import rows
from tests.support.waiting import wait_until
from tristore.errors import Unavailable
from tristore.pipeline.actions import act
from tristore.pipeline.lifecycle import Lifecycle
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.tools import Tools

BASE = "/timestore/v1"
SCOPES = ("timestore:read", "timestore:write", "timestore:admin", "events:publish")
LOGGED = "SELECT payload, correlation_id, source FROM bus.workflow_events WHERE type = %s"


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress") as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES), timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def tools(
    spark: SparkSession, java: str, api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Tools:
    """The driver's side of the platform that the API is the other side of."""
    folder = tmp_path_factory.mktemp("events")
    return Tools(spark, PipelineConfig(api.database, str(folder / "tables"), folder / "checkpoint"))


@pytest.fixture(scope="module")
def filled(tools: Tools, http: httpx.Client) -> Tools:
    event = {"type": "shop.order.placed", "source": "shop", "payload": {"n": 1}}
    assert http.post("/v1/events", json=[event] * 5).status_code == 202
    wait_until(lambda: len(rows(tools.config.database_url, LOGGED, "shop.order.placed")) == 5, 60)
    catch_up(tools, "events", 1000)
    return tools


def logged(api: Api, type: str) -> dict[str, Any]:
    (found,) = wait_until(lambda: rows(api.database, LOGGED, type), 60)
    return found


def test_a_partition_that_closed(api: Api, http: httpx.Client, filled: Tools) -> None:
    # The oldest: midnight may have passed since the events were published.
    name = wait_until(lambda: listed(http, filled), 60)[-1]["partition"]
    assert wait_until(lambda: close(filled, name), 60) == {"events": [name]}
    event = logged(api, "timestore.partition.closed")
    payload = event["payload"]
    assert event["source"] == "timestore.pipeline"
    assert (payload["dataset"], payload["revision"], payload["files"]) == ("events", 0, 1)
    items = http.get(f"{BASE}/datasets/events/partitions").json()["items"]
    item = next(one for one in items if one["partition"] == name)
    assert (item["state"], item["revision"], item["rows"]) == ("closed", 1, payload["rows"])
    assert item["tableVersion"] == payload["tableVersion"]


def listed(http: httpx.Client, tools: Tools) -> list[dict[str, Any]]:
    Lifecycle(tools.spark, tools.config).step()
    found: list[dict[str, Any]] = http.get(f"{BASE}/datasets/events/partitions").json()["items"]
    return found


def close(tools: Tools, partition: str) -> Any:
    """Events come by themselves: what they tell of is in the log a moment later."""
    catch_up(tools, "events", 1000)
    try:
        given = {"dataset": "events", "partition": partition}
        return act(tools, "close", given, lambda done, total: None)
    except Unavailable:
        return None


def test_a_dataset_that_was_exported(api: Api, http: httpx.Client, filled: Tools) -> None:
    body = {"format": "csv", "target": "nightly", "from": "2020-01-01T00:00:00Z"}
    headers = {"Idempotency-Key": "once", "X-Correlation-Id": "run-7"}
    path = f"{BASE}/datasets/events/exports"
    asked = http.post(path, json=body, headers=headers)
    assert (asked.status_code, asked.json()["state"]) == (202, "queued")
    again = http.post(path, json=body, headers=headers)
    assert again.json()["id"] == asked.json()["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    other = http.post(path, json={**body, "format": "delta"}, headers=headers)
    assert other.status_code == 409
    assert http.post(path, json=body).status_code == 409

    lifecycle = Lifecycle(filled.spark, filled.config)
    done = wait_until(lambda: finished(http, asked.headers["Location"], lifecycle, filled), 60)
    assert done is not None
    event = logged(api, "timestore.dataset.exported")
    payload = event["payload"]
    assert event["correlation_id"] == "run-7"
    assert payload["exportId"] == done["id"]
    assert (payload["target"], payload["rows"]) == ("exports/nightly", done["rows"])
    assert payload["from"] == "2020-01-01T00:00:00Z"
    folder = Path(filled.config.tables_root).parent / "exports" / "nightly"
    lines = [line for file in folder.rglob("*.csv") for line in file.read_text().splitlines()]
    assert len(lines) - len(list(folder.rglob("*.csv"))) == done["rows"] >= 5
    page = http.get(f"{BASE}/exports", params={"dataset": "events"}).json()
    assert [item["id"] for item in page["items"]] == [done["id"]]


def finished(
    http: httpx.Client, location: str, lifecycle: Lifecycle, tools: Tools
) -> dict[str, Any] | None:
    catch_up(tools, "events", 1000)
    lifecycle.step()
    found: dict[str, Any] = http.get(location).json()
    assert found["state"] != "failed", found
    return found if found["state"] == "completed" else None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"format": "xml"}, 422),
        ({"target": "../../etc"}, 422),
        ({"target": "/tmp/x"}, 422),
        ({"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}, 422),
        ({"from": "2026-01-02T00:00:00"}, 422),
        ({"formt": "csv"}, 422),
    ],
)
def test_a_bad_request_is_named(http: httpx.Client, body: dict[str, str], status: int) -> None:
    answer = http.post(f"{BASE}/datasets/events/exports", json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"]


def test_a_dataset_a_token_may_not_read_is_not_there(api: Api, http: httpx.Client) -> None:
    made = http.post(f"{BASE}/datasets/filestore_growth/exports", json={})
    headers = api.bearer("timestore:read", "timestore:write", datasets=["events"])
    with httpx.Client(base_url=api.url, headers=headers) as limited:
        for path in ("datasets/filestore_growth/partitions", f"exports/{made.json()['id']}"):
            assert limited.get(f"{BASE}/{path}").status_code == 404
        assert limited.post(f"{BASE}/datasets/filestore_growth/exports").status_code in (404, 422)
        ids = [one["id"] for one in limited.get(f"{BASE}/exports").json()["items"]]
        assert made.json()["id"] not in ids
    reader = api.bearer("timestore:read")
    refused = httpx.post(f"{api.url}{BASE}/datasets/events/exports", json={}, headers=reader)
    assert refused.status_code == 403
    assert http.get(f"{BASE}/exports/{2**63}").status_code == 422
    assert http.get(f"{BASE}/datasets/events/partitions?cursor=x").status_code == 422
