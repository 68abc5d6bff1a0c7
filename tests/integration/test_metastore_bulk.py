"""Bulk calls: all or nothing, item by item, authorised item by item, without deadlocks."""

import random
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.database import value
from tests.support.metastore import ALL, BASE, Meta, new_namespace


@pytest.fixture(scope="module")
def api(server_url: str) -> Iterator[Api]:
    with own_api(server_url, "inline") as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=60) as client:
        yield client


@pytest.fixture
def meta(api: Api, http: httpx.Client) -> Meta:
    return Meta(http, api.database, new_namespace())


def up(key: str, **content: Any) -> dict[str, Any]:
    return {"op": "upsert", "key": key, **content}


def results(answer: httpx.Response) -> list[tuple[int, str, int | None]]:
    assert answer.status_code == 200, answer.text
    found = answer.json()["results"]
    return [(one["status"], one["outcome"], one.get("version")) for one in found]


def test_every_item_has_its_result(meta: Meta) -> None:
    meta.put("old", metadata={"n": 1})
    meta.put("same", metadata={"n": 1})
    meta.put("dead")
    meta.delete("dead")
    answer = meta.bulk(
        up("new", metadata={"n": 1}, tags=["b", "a"], owner="o"),
        up("old", metadata={"n": 2}),
        up("same", metadata={"n": 1}),
        up("dead", metadata={}),
        {"op": "delete", "key": "old", "ifMatch": 2},
        mode="perItem",
    )
    assert results(answer) == [
        (201, "created", 1),
        (200, "updated", 2),
        (200, "unchanged", 1),
        (200, "restored", 3),
        (200, "deleted", 3),
    ]
    assert meta.get("new").json()["tags"] == ["a", "b"]
    assert [i["action"] for i in meta.audit("old")["items"]] == ["delete", "update", "create"]
    told = [event["type"].rsplit(".")[-1] for event in meta.events("old")]
    assert told == ["created", "updated", "deleted"]


def test_changes_of_one_key_build_on_one_another(meta: Meta) -> None:
    answer = meta.bulk(
        up("k", metadata={"n": 1}),
        up("k", metadata={"n": 2}, ifMatch=1),
        up("k", metadata={"n": 2}),
        {"op": "delete", "key": "k"},
        up("k", metadata={"n": 3}),
    )
    assert results(answer) == [
        (201, "created", 1),
        (200, "updated", 2),
        (200, "unchanged", 2),
        (200, "deleted", 3),
        (200, "restored", 4),
    ]
    items = meta.audit("k")["items"]
    assert [(i["version"], i["after"]["metadata"]) for i in items] == [
        (4, {"n": 3}),
        (3, {"n": 2}),
        (2, {"n": 2}),
        (1, {"n": 1}),
    ]
    assert [event["payload"]["version"] for event in meta.events("k")] == [1, 2, 3, 4]


def test_versions_go_on_where_a_purge_left_them(meta: Meta) -> None:
    meta.put("k", metadata={"n": 1})
    meta.purge("k")
    answer = meta.bulk(
        up("k", metadata={"n": 1}), up("k", metadata={"n": 1}), up("k", metadata={}, ifMatch=3)
    )
    assert results(answer) == [(201, "created", 3), (200, "unchanged", 3), (200, "updated", 4)]


def test_atomic_means_all_or_nothing(meta: Meta) -> None:
    meta.put("there", metadata={"n": 1})
    before = meta.stored()
    wrong: list[tuple[dict[str, Any], int]] = [
        (up("there", ifMatch=9), 412),
        ({"op": "delete", "key": "absent"}, 404),
        (up("k", tags=[1]), 422),
        (up("k\n"), 422),
        ({"op": "rename", "key": "k"}, 422),
        (up("k", ifMatch=[]), 422),
        (up("k", surprise=1), 422),
    ]
    for item, status in wrong:
        answer = meta.bulk(up("a"), up("b"), item)
        assert answer.status_code == status, answer.text
        assert "2" in answer.json()["detail"], "the item is named"
        assert meta.stored() == before
    each = meta.bulk(up("a"), *(item for item, _ in wrong), mode="perItem").json()["results"]
    assert [one["status"] for one in each] == [201, *(status for _, status in wrong)]
    assert each[3]["error"]["errors"] == [
        {"path": "/tags/0", "message": "a tag has 1 to 128 characters, none of them control"}
    ]
    assert meta.stored() == (2, 2, 2)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"items": []},
        {"items": {}},
        {"items": [{}] * 5001},
        {"items": [1], "mode": "perhaps"},
        {"items": [1], "extra": 1},
        [],
        1,
    ],
)
def test_a_call_that_is_no_bulk_is_refused(http: httpx.Client, body: Any) -> None:
    answer = http.post(f"{BASE}/records/bulk", json=body)
    assert answer.status_code == 422 and answer.json()["errors"]


def test_each_item_is_authorised(api: Api, meta: Meta) -> None:
    """Item 57 of 100 names another's namespace: it is refused as if that were not there."""
    meta.put("secret", metadata={"n": 1})
    mine = new_namespace()
    limited = api.bearer("metastore:read", "metastore:write", namespaces=[mine])
    items = [{"op": "upsert", "namespace": mine, "key": f"k{n}"} for n in range(100)]
    items[57] = {**items[57], "namespace": meta.namespace, "key": "secret"}
    items[58] = {"op": "delete", "namespace": mine, "key": "k1"}

    def send(mode: str) -> httpx.Response:
        body = {"mode": mode, "items": items}
        return httpx.post(f"{api.url}{BASE}/records/bulk", json=body, headers=limited)

    refused = send("atomic")
    assert refused.status_code == 404 and "item 57" in refused.json()["detail"]
    assert (
        value(api.database, "SELECT count(*) FROM metastore.namespaces WHERE name = %s", mine) == 0
    )
    each = send("perItem").json()["results"]
    assert [one["status"] for one in each] == [201] * 57 + [404, 403] + [201] * 41
    assert meta.get("secret").json()["version"] == 1
    items[57] = {**items[57], "namespace": new_namespace()}
    assert send("perItem").json()["results"][57] == each[57], "the same as one that is not there"


def test_a_repeated_bulk_call_happens_once(meta: Meta) -> None:
    keyed = {"Idempotency-Key": meta.namespace}
    one, two = (meta.bulk(*(up(f"k{n}") for n in range(50)), **keyed) for _ in range(2))
    assert one.text == two.text and two.headers["idempotency-replayed"] == "true"
    assert meta.bulk(up("k1"), **keyed).status_code == 409
    assert meta.stored() == (50, 50, 50)


def test_five_thousand_records_in_one_call(meta: Meta) -> None:
    items = [up(f"k{n}", metadata={"n": n, "text": "x" * 200}, tags=["t"]) for n in range(5000)]
    assert {status for status, _, _ in results(meta.bulk(*items))} == {201}
    assert {outcome for _, outcome, _ in results(meta.bulk(*items))} == {"unchanged"}
    gone = ({"op": "delete", "key": f"k{n}"} for n in range(5000))
    assert {version for _, _, version in results(meta.bulk(*gone))} == {2}
    assert meta.stored() == (5000, 10_000, 10_000)


def test_the_body_is_capped(meta: Meta) -> None:
    big = {"a": "x" * 200_000}
    assert meta.bulk(*(up(f"k{n}", metadata=big) for n in range(20))).status_code == 200
    answer = meta.bulk(*(up(f"k{n}", metadata=big) for n in range(90)))
    assert answer.status_code == 413
    assert meta.stored()[0] == 20


def test_overlapping_calls_in_opposite_orders_do_not_deadlock(meta: Meta) -> None:
    """F20: new and known keys, in every order, from six writers at once."""
    keys = [f"k{n:02}" for n in range(40)]
    meta.bulk(*(up(key, metadata={"n": -1}) for key in keys[::3]))
    before = _deadlocks(meta)
    gate, found = threading.Barrier(6), list[int]()

    def write(worker: int) -> None:
        order = random.Random(worker)
        with httpx.Client(base_url=meta.http.base_url, headers=meta.http.headers) as client:
            mine = Meta(client, meta.database, meta.namespace)
            for turn in range(12):
                gate.wait(60)
                # What all of them make at once they cannot have locked before.
                fresh = [f"new{turn}-{n:02}" for n in range(40)]
                mixed = sorted(fresh if turn % 2 else keys, reverse=bool(worker % 2))
                if turn % 3 == 0:
                    order.shuffle(mixed)
                items = [up(key, metadata={"n": worker * 100 + turn}) for key in mixed]
                found.append(mine.bulk(*items).status_code)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [200] * 72
    assert _deadlocks(meta) == before
    # Nothing was lost: every version is there once, with its event.
    records, audits, events = meta.stored()
    assert records == 40 * 7 and audits == events
    versions = "SELECT sum(version) FROM metastore.records WHERE namespace = %s"
    assert value(meta.database, versions, meta.namespace) == audits


def _deadlocks(meta: Meta) -> int:
    """Postgres counts them; a session tells its count when it ends or after a second."""
    value(meta.database, "SELECT pg_stat_force_next_flush()")
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    return int(value(meta.database, query))
