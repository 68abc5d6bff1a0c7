"""Records over HTTP: every change, its version, its audit row and its refusals."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.api import Api, own_api
from tests.support.metastore import ALL, BASE, Meta, new_namespace


@pytest.fixture(scope="module")
def api(server_url: str) -> Iterator[Api]:
    with own_api(server_url, "inline") as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=30) as client:
        yield client


@pytest.fixture
def meta(api: Api, http: httpx.Client) -> Meta:
    return Meta(http, api.database, new_namespace())


def version(answer: httpx.Response) -> int:
    assert answer.status_code in (200, 201), answer.text
    assert answer.headers["etag"] == f'"{answer.json()["version"]}"'
    return int(answer.json()["version"])


def test_a_record_is_made_and_read_back(meta: Meta) -> None:
    made = meta.create("a/b c", metadata={"n": 1, "f": 1.5}, tags=["y", "x", "y"], owner="ops")
    assert made.status_code == 201
    record = made.json()
    assert record["tags"] == ["x", "y"] and record["owner"] == "ops" and record["version"] == 1
    assert record["createdBy"] == record["updatedBy"] == "test"
    assert record["createdAt"].endswith("Z") and record["deletedAt"] is None
    found = meta.get("a/b c")
    assert found.json() == record and found.headers["etag"] == '"1"'
    # A slash that is not encoded is part of the key as well.
    plain = meta.http.get(f"{BASE}/records/{meta.namespace}/a/b%20c")
    assert plain.json() == record


def test_the_quick_and_the_long_way_make_the_same(meta: Meta) -> None:
    """The first record of a namespace takes the long way, the second the quick one."""
    content: dict[str, Any] = {"metadata": {"a": [1, None]}, "tags": ["t"], "owner": "me"}
    one, two = (meta.create(key, **content).json() for key in ("one", "two"))
    moving = {"key", "createdAt", "updatedAt"}
    assert {k: v for k, v in one.items() if k not in moving} == {
        k: v for k, v in two.items() if k not in moving
    }
    first, second = (meta.audit(key)["items"][0] for key in ("one", "two"))
    for item in (first, second):
        assert item.pop("at") and item.pop("correlationId")
    assert first == second
    assert first["before"] is None and first["after"]["metadata"] == {"a": [1, None]}
    told = [meta.events(key)[0] for key in ("one", "two")]
    assert told[0]["payload"] | {"key": ""} == told[1]["payload"] | {"key": ""}
    assert told[0]["type"] == told[1]["type"] == "metastore.record.created"


def test_a_second_create_is_refused(meta: Meta) -> None:
    for _ in range(2):
        meta.create("k", metadata={"a": 1})
    answer = meta.create("k", metadata={"a": 2})
    assert answer.status_code == 409 and "PUT" in answer.json()["detail"]
    meta.delete("k")
    assert "restore" in meta.create("k").json()["detail"]
    assert meta.get("k", includeDeleted=True).json()["metadata"] == {"a": 1}


def test_put_makes_replaces_and_brings_back(meta: Meta) -> None:
    assert meta.put("k", metadata={"a": 1}, tags=["t"]).status_code == 201
    replaced = meta.put("k", metadata={"b": 2}, owner="o")
    assert replaced.status_code == 200
    assert replaced.json()["metadata"] == {"b": 2} and replaced.json()["tags"] == []
    meta.delete("k")
    back = meta.put("k", metadata={"b": 2}, owner="o")
    assert back.status_code == 200 and back.json()["deletedAt"] is None and version(back) == 4
    assert [item["action"] for item in meta.audit("k")["items"]] == [
        "restore",
        "delete",
        "update",
        "create",
    ]


def test_a_write_that_changes_nothing_leaves_nothing(meta: Meta) -> None:
    content: dict[str, Any] = {"metadata": {"a": {"b": 1e18}, "c": True}, "tags": ["x"]}
    meta.put("k", **content)
    before = meta.stored()
    same = meta.put("k", **{**content, "tags": ["x", "x"]})
    assert version(same) == 1
    assert version(meta.patch("k", metadata={"a": {"b": 1e18}}, tags={"add": ["x"]})) == 1
    assert version(meta.restore("k", 1)) == 1
    assert meta.stored() == before == (1, 1, 1)
    # True is not 1, although Python thinks so.
    assert version(meta.patch("k", metadata={"c": 1})) == 2


def test_patch_merges(meta: Meta) -> None:
    meta.put("k", metadata={"a": {"x": 1, "y": 2}, "b": 3}, tags=["one", "two"], owner="o")
    found = meta.patch(
        "k", metadata={"a": {"x": None, "z": 9}}, tags={"add": ["three"], "remove": ["one"]}
    ).json()
    assert found["metadata"] == {"a": {"y": 2, "z": 9}, "b": 3}
    assert found["tags"] == ["three", "two"] and found["owner"] == "o"
    assert meta.patch("k", owner=None, tags={"set": ["n"]}).json()["owner"] is None
    item = meta.audit("k", limit=2)["items"][1]
    assert item["changed"] == ["metadata.a", "tags"]
    assert item["before"]["metadata"] == {"a": {"x": 1, "y": 2}, "b": 3}


def test_a_deleted_record_is_gone_until_it_is_asked_for(meta: Meta) -> None:
    meta.put("k", metadata={"a": 1})
    assert meta.delete("k").json()["deletedAt"]
    assert meta.get("k").status_code == 404
    assert meta.get("k", includeDeleted=True).json()["version"] == 2
    assert meta.patch("k", metadata={}).status_code == 404
    assert meta.delete("k").status_code == 404
    assert meta.restore("k", 1).json()["deletedAt"] is None


def test_restore_brings_back_any_version(meta: Meta) -> None:
    for number in range(1, 4):
        meta.put("k", metadata={"n": number}, tags=[f"t{number}"])
    restored = meta.restore("k", 1)
    assert restored.json()["metadata"] == {"n": 1} and restored.json()["tags"] == ["t1"]
    newest = meta.audit("k", limit=1)
    assert newest["items"][0]["restoredFrom"] == 1 and newest["items"][0]["action"] == "restore"
    assert meta.restore("k", 9).status_code == 404
    for wrong in (0, -1, "1", 1.5, True, None, 2**40):
        assert meta.restore("k", wrong).status_code == 422, wrong


def test_purge_leaves_only_that_it_was(meta: Meta) -> None:
    meta.put("k", metadata={"secret": "x"}, tags=["t"], owner="o")
    meta.put("k", metadata={"secret": "y"})
    assert meta.purge("k").status_code == 204
    assert meta.get("k", includeDeleted=True).status_code == 404
    items = meta.audit("k")["items"]
    assert [(i["version"], i["action"]) for i in items] == [
        (3, "purge"),
        (2, "update"),
        (1, "create"),
    ]
    assert all(i["before"] is i["after"] is None and i["changed"] == [] for i in items)
    assert meta.events("k")[-1]["payload"] == {
        "namespace": meta.namespace,
        "key": "k",
        "version": 3,
        "tags": [],
        "actor": "test",
        "changed": [],
        "mode": "purge",
    }
    assert meta.restore("k", 1).status_code == 404
    assert meta.purge("k").status_code == 404
    # A version never means two things: the next record of that key goes on counting.
    assert version(meta.create("k", metadata={"n": 1})) == 4


def test_the_audit_is_paged_newest_first(meta: Meta) -> None:
    for number in range(7):
        meta.put("k", metadata={"n": number})
    seen, cursor = [], None
    while True:
        page = meta.audit("k", limit=3, **({"cursor": cursor} if cursor else {}))
        seen += [item["version"] for item in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    for wrong in ("0", "-1", "x", "9" * 15):
        answer = meta.http.get(meta.path("k", "/audit"), params={"cursor": wrong})
        assert answer.status_code == 422, wrong
    assert meta.http.get(meta.path("none", "/audit")).status_code == 404


def test_if_match_names_the_version(meta: Meta) -> None:
    meta.put("k", metadata={"n": 1})
    meta.put("k", metadata={"n": 2})
    before = meta.stored()
    old, new = {"If-Match": '"1"'}, {"If-Match": '"2"'}
    assert meta.put("k", old, metadata={}).status_code == 412
    assert meta.patch("k", old, owner="x").status_code == 412
    assert meta.delete("k", old).status_code == 412
    assert meta.restore("k", 1, old).status_code == 412
    assert meta.purge("k", old).status_code == 412
    assert meta.put("new", old, metadata={}).status_code == 412
    assert meta.put("k", {"If-None-Match": "*"}, metadata={}).status_code == 412
    assert meta.put("k", {"If-Match": 'W/"2"'}, metadata={}).status_code == 412
    assert meta.put("k", {"If-Match": "two"}, metadata={}).status_code == 400
    assert meta.stored() == before
    assert version(meta.patch("k", new, owner="x")) == 3


def test_of_many_who_know_the_same_version_one_wins(meta: Meta) -> None:
    meta.put("k", metadata={"n": 0})
    gate, found = threading.Barrier(6), []

    def change(number: int) -> None:
        gate.wait()
        with httpx.Client(base_url=meta.http.base_url, headers=meta.http.headers) as client:
            mine = Meta(client, meta.database, meta.namespace)
            found.append(mine.put("k", {"If-Match": '"1"'}, metadata={"n": number + 1}).status_code)

    threads = [threading.Thread(target=change, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [200, 412, 412, 412, 412, 412]
    assert meta.stored() == (1, 2, 2)


def test_of_many_who_make_the_same_record_one_does(meta: Meta) -> None:
    meta.put("other")
    gate, found = threading.Barrier(6), []

    def make(number: int) -> None:
        with httpx.Client(base_url=meta.http.base_url, headers=meta.http.headers) as client:
            mine = Meta(client, meta.database, meta.namespace)
            gate.wait()
            write = mine.create if number % 2 else mine.put
            found.append(write("k", metadata={"n": 1}).status_code)

    threads = [threading.Thread(target=make, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found)[-1] == 409 or found.count(201) == 1
    assert found.count(201) == 1 and set(found) <= {200, 201, 409}
    assert meta.stored() == (2, 2, 2)


def test_a_repeated_write_happens_once(meta: Meta) -> None:
    keyed = {"Idempotency-Key": f"once-{meta.namespace}"}
    first, second = (meta.create("k", keyed, metadata={"n": 1}) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json() and second.headers["etag"] == '"1"'
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    other = meta.create("k2", keyed, metadata={"n": 1})
    assert other.status_code == 409 and "Idempotency-Key" in other.json()["detail"]
    assert meta.stored() == (1, 1, 1)
    gone = {"Idempotency-Key": f"gone-{meta.namespace}"}
    assert [meta.delete("k", gone).status_code for _ in range(2)] == [200, 200]
    assert meta.patch("k", {"Idempotency-Key": "x" * 201}, owner="o").status_code == 400


def test_writers_with_one_idempotency_key_at_once_agree(meta: Meta) -> None:
    keyed = {"Idempotency-Key": f"race-{meta.namespace}"}
    gate, found = threading.Barrier(5), []

    def make() -> None:
        with httpx.Client(base_url=meta.http.base_url, headers=meta.http.headers) as client:
            mine = Meta(client, meta.database, meta.namespace)
            gate.wait()
            found.append(mine.put("k", keyed, metadata={"n": 1}))

    threads = [threading.Thread(target=make) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in found} == {201}
    assert len({answer.text for answer in found}) == 1 and meta.stored() == (1, 1, 1)


def test_a_write_does_not_wait_for_ever(meta: Meta) -> None:
    """Somebody holds the record, or a key that is being made: the answer is to try again."""
    meta.put("k", metadata={"n": 1})
    answers: dict[str, httpx.Response] = {}
    with psycopg.connect(meta.database) as conn:
        conn.execute(
            "SELECT FROM metastore.records WHERE namespace = %s FOR UPDATE", [meta.namespace]
        )
        conn.execute(
            "INSERT INTO metastore.records (namespace, key, metadata, created_by, updated_by)"
            " VALUES (%s, 'new', '{}', 'x', 'x')",
            [meta.namespace],
        )
        calls = {"k": meta.put, "new": meta.create}
        threads = [
            threading.Thread(target=lambda key=key, ask=ask: answers.update({key: ask(key)}))
            for key, ask in calls.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        conn.rollback()
    for answer in answers.values():
        assert answer.status_code == 409 and answer.headers["retry-after"] == "1"
    assert meta.stored() == (1, 1, 1) and len(answers) == 2
    assert meta.create("new").status_code == 201


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"metadata": []}, "/metadata"),
        ({"metadata": None}, "/metadata"),
        ({"tags": "x"}, "/tags"),
        ({"tags": [1]}, "/tags/0"),
        ({"tags": [""]}, "/tags/0"),
        ({"tags": ["a", "b\n"]}, "/tags/1"),
        ({"tags": ["x" * 129]}, "/tags/0"),
        ({"tags": [str(n) for n in range(501)]}, "/tags"),
        ({"tags": ["\U0001f600" * 120 + str(n) for n in range(200)]}, "/tags"),
        ({"owner": ""}, "/owner"),
        ({"owner": 7}, "/owner"),
        ({"owner": "x" * 201}, "/owner"),
        ({"version": 3}, "/version"),
        ({"wrong": 1}, "/wrong"),
        ({"metadata": {"a": "x" * 262_144}}, "/metadata"),
        ({"namespace": "another"}, "/namespace"),
    ],
)
def test_a_wrong_body_is_told_where(meta: Meta, body: dict[str, Any], path: str) -> None:
    before = meta.stored()
    answer = meta.put("k", **body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert [error["path"] for error in answer.json()["errors"]] == [path]
    assert meta.stored() == before


def test_numbers_come_back_as_they_were(meta: Meta) -> None:
    numbers = [2**53 + 1, -(2**63), 2**63 - 1, 0.1, 1e300, 5e-324, 1e18, -0.0]
    meta.put("k", metadata={"n": numbers})
    assert meta.get("k").json()["metadata"]["n"] == numbers


@pytest.mark.parametrize("key", ["é", "ключ", "a\u202eb", "..", "%2F", "a?b#c", "\U0001f600", " "])
def test_odd_keys_are_keys(meta: Meta, key: str) -> None:
    made = meta.create(key, metadata={"k": key})
    assert made.status_code == 201 and made.json()["key"] == key
    if key != "..":  # clients walk up the path themselves
        assert meta.get(key).json()["metadata"] == {"k": key}


def test_a_key_may_end_like_a_part_of_a_record(meta: Meta) -> None:
    for key in ("x/audit", "x/purge", "x/restore"):
        assert meta.put(key, metadata={"k": key}).status_code == 201
        assert meta.get(key).json()["metadata"] == {"k": key}
    assert meta.http.put(f"{BASE}/records/{meta.namespace}/x/audit", json={}).status_code == 400
    assert meta.http.get(f"{BASE}/records/{meta.namespace}/x/audit").status_code == 404


def test_a_patch_cannot_grow_a_record_past_its_bounds(meta: Meta) -> None:
    meta.put("k", metadata={"a": "x" * 200_000}, tags=[f"t{n}" for n in range(400)])
    assert meta.patch("k", metadata={"b": "x" * 100_000}).status_code == 422
    assert meta.patch("k", tags={"add": [f"u{n}" for n in range(101)]}).status_code == 422
    deep: Any = 1
    for _ in range(62):
        deep = {"d": deep}
    meta.put("deep", metadata={"a": deep})
    assert meta.stored() == (2, 2, 2)
