"""Namespaces: rules that hold on every way in, and what a change of them tells."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.api import Api, own_api
from tests.support.database import value
from tests.support.metastore import ALL, BASE, Meta, new_namespace

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


# As an operator would install it: a package with an entry point.
HOOK = """
from dataclasses import replace
from tristore.errors import Refused

def stamp(before, proposal):
    if not proposal.namespace.startswith("hooked") or proposal.deleted:
        return proposal
    if "forbidden" in proposal.metadata:
        raise Refused("nothing forbidden, please")
    if "crash" in proposal.metadata:
        raise ZeroDivisionError
    if "move" in proposal.metadata:
        return replace(proposal, key="elsewhere")
    return replace(proposal, metadata={**proposal.metadata, "stamped": True}, tags=["z", "a"])
"""


@pytest.fixture(scope="module")
def api(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("hooks")
    (folder / "stamping.py").write_text(HOOK)
    installed = folder / "stamping-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: stamping\nVersion: 1.0\n")
    entry = "[tristore.metastore_hooks]\nstamp = stamping:stamp\n"
    (installed / "entry_points.txt").write_text(entry)
    with own_api(server_url, "inline", PYTHONPATH=str(folder)) as api:
        yield api


@pytest.fixture(scope="module")
def http(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=30) as client:
        yield client


@pytest.fixture
def meta(api: Api, http: httpx.Client) -> Meta:
    return Meta(http, api.database, new_namespace())


def paths(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 422, answer.text
    return sorted(error["path"] for error in answer.json()["errors"])


def test_a_namespace_appears_with_its_first_record(meta: Meta) -> None:
    there = f"{BASE}/namespaces/{meta.namespace}"
    assert meta.http.get(there).status_code == 404
    assert meta.put("k", metadata=[]).status_code == 422
    assert meta.http.get(there).status_code == 404
    meta.put("k")
    found = meta.http.get(there)
    assert found.headers["etag"] == '"1"' and found.json()["createdBy"] == "test"
    assert {k: found.json()[k] for k in ("schema", "allowedTags", "requireOwner")} == {
        "schema": None,
        "allowedTags": None,
        "requireOwner": False,
    }


def test_rules_hold_on_every_way_in(meta: Meta) -> None:
    made = meta.rules(
        schema=SCHEMA, allowedTags=["b", "a"], requireOwner=True, keyPattern="[a-z]+|x-\\d"
    )
    assert made.status_code == 201 and made.json()["namespace"]["allowedTags"] == ["a", "b"]
    good: dict[str, Any] = {"metadata": {"n": 1}, "tags": ["a"], "owner": "o"}
    wrong: dict[str, Any] = {"metadata": {"n": "x"}, "tags": ["c"], "owner": None}
    everything = ["/key", "/metadata/n", "/owner", "/tags"]
    assert paths(meta.create("K", **wrong)) == everything
    assert paths(meta.put("K", **wrong)) == everything
    bulk = meta.bulk({"op": "upsert", "key": "K", **wrong})
    assert paths(bulk) == [f"/items/0{path}" for path in everything]
    assert meta.stored() == (0, 0, 0)
    for key in ("k", "x-1"):
        assert meta.create(key, **good).status_code == 201
    # The whole key must match, whichever branch it takes.
    for key in ("kk-", "x-1z", "ax-1", "k\u2028"):
        assert paths(meta.create(key, **good)) == ["/key"]
    assert paths(meta.patch("k", metadata={"n": None})) == ["/metadata"]
    assert paths(meta.patch("k", tags={"add": ["z"]}, owner=None)) == ["/owner", "/tags"]
    assert meta.stored() == (2, 2, 2)


def test_changed_rules_tell_what_does_not_fit_and_change_nothing(meta: Meta) -> None:
    for number in range(3):
        meta.put(f"good{number}", metadata={"n": number})
    meta.put("bad", metadata={"n": "x"}, tags=["t"])
    meta.put("gone", metadata={"n": "x"})
    meta.delete("gone")
    before = meta.stored()
    answer = meta.rules(schema=SCHEMA)
    assert answer.status_code == 200
    found = answer.json()
    assert found["namespace"]["version"] == 2
    assert found["violations"]["count"] == 1 and not found["violations"]["truncated"]
    assert [item["key"] for item in found["violations"]["items"]] == ["bad"]
    assert found["violations"]["items"][0]["errors"][0]["path"] == "/metadata/n"
    assert meta.stored() == before and meta.get("bad").json()["metadata"] == {"n": "x"}
    # What is there must fit when it is next written; it may always be deleted.
    assert paths(meta.patch("bad", owner="o")) == ["/metadata/n"]
    assert paths(meta.restore("gone", 1)) == ["/metadata/n"]
    assert meta.patch("bad", metadata={"n": 1}).status_code == 200
    assert meta.delete("bad").status_code == 200


def test_many_misfits_are_counted_and_the_first_listed(meta: Meta) -> None:
    meta.bulk(*({"op": "upsert", "key": f"k{number:03}"} for number in range(620)))
    found = meta.rules(requireOwner=True).json()["violations"]
    assert found["count"] == found["scanned"] == 620 and found["truncated"]
    assert [item["key"] for item in found["items"]] == [f"k{n:03}" for n in range(100)]


def test_setting_the_same_rules_again_is_no_new_version(meta: Meta) -> None:
    for _ in range(2):
        answer = meta.rules(schema=SCHEMA, allowedTags=["x", "x"])
    assert answer.status_code == 200 and answer.headers["etag"] == '"1"'
    assert meta.rules({"If-Match": '"7"'}, requireOwner=True).status_code == 412
    assert meta.rules({"If-Match": '"1"'}, requireOwner=True).headers["etag"] == '"2"'
    keyed = {"Idempotency-Key": meta.namespace}
    answers = [meta.rules(keyed, requireOwner=False) for _ in range(2)]
    assert {answer.headers["etag"] for answer in answers} == {'"3"'}
    assert meta.rules(keyed, requireOwner=True).status_code == 409


@pytest.mark.parametrize(
    ("rules", "path"),
    [
        ({"schema": []}, "/schema"),
        ({"schema": {"type": "array"}}, "/schema/type"),
        ({"schema": {"$ref": "http://127.0.0.1/x"}}, "/schema/$ref"),
        ({"schema": {"$ref": "#"}}, "/schema"),
        ({"schema": {"properties": {"a": {"pattern": "(?=a)b"}}}}, "/schema/properties/a/pattern"),
        ({"schema": {"properties": {"a": {"pattern": "a{9999}"}}}}, "/schema/properties/a/pattern"),
        ({"schema": {"properties": {"a": {"uniqueItems": True}}}}, None),
        ({"allowedTags": "x"}, "/allowedTags"),
        ({"allowedTags": [1]}, "/allowedTags/0"),
        ({"requireOwner": "yes"}, "/requireOwner"),
        ({"keyPattern": "(a"}, "/keyPattern"),
        ({"keyPattern": "a)(b"}, "/keyPattern"),
        ({"keyPattern": "a{2000}"}, "/keyPattern"),
        ({"keyPattern": "(?!x)y"}, "/keyPattern"),
        ({"keyPattern": "[z-a]"}, "/keyPattern"),
        ({"keyPattern": ""}, "/keyPattern"),
        ({"keyPattern": 7}, "/keyPattern"),
        ({"indexes": "metadata.a"}, "/indexes"),
        ({"indexes": ["metadata.a", "metadata.*"]}, "/indexes/1"),
        ({"indexes": ["owner"]}, "/indexes/0"),
        ({"textFields": {}}, "/textFields"),
        ({"textFields": [7]}, "/textFields/0"),
        ({"rules": 1}, "/rules"),
    ],
)
def test_rules_that_are_malformed_or_dangerous_are_refused(
    meta: Meta, rules: dict[str, Any], path: str | None
) -> None:
    found = paths(meta.rules(**rules))
    assert path is None or found == [path]
    assert meta.http.get(f"{BASE}/namespaces/{meta.namespace}").status_code == 404


def test_a_hostile_key_costs_no_time(meta: Meta) -> None:
    """In a backtracking engine this pattern takes longer than the universe has."""
    assert meta.rules(keyPattern="(a+)+b").status_code == 201
    assert paths(meta.create("a" * 1000)) == ["/key"]


def test_namespaces_are_listed_in_pages(api: Api, meta: Meta) -> None:
    names = sorted(f"{meta.namespace}-{number}" for number in range(5))
    reader = api.bearer("metastore:read", namespaces=[*names, "absent"])
    for name in names:
        meta.http.put(f"{BASE}/namespaces/{name}", json={})
    seen, params = [], {"limit": "2"}
    while True:
        url = f"{api.url}{BASE}/namespaces"
        page = httpx.get(url, headers=reader, params=params).json()
        seen += [item["name"] for item in page["items"]]
        if page["nextCursor"] is None:
            break
        params["cursor"] = page["nextCursor"]
    assert seen == names


def test_no_write_slips_past_a_change_of_rules(meta: Meta) -> None:
    """Writers go on while an owner becomes required: whatever was written after the change was
    answered has one, though each writer knew the rules from before."""
    meta.put("first")
    done, late = threading.Event(), list[tuple[int, bool]]()

    def write(worker: int) -> None:
        with httpx.Client(base_url=meta.http.base_url, headers=meta.http.headers) as client:
            mine = Meta(client, meta.database, meta.namespace)
            for number in range(1000):
                after = done.is_set()
                status = mine.create(f"w{worker}-{number}").status_code
                late.append((status, after))
                if after and number > 20:
                    return

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    while len(late) < 60:
        done.wait(0.01)
    assert meta.rules(requireOwner=True).status_code == 200
    done.set()
    for thread in threads:
        thread.join()
    assert {status for status, after in late if after} == {422}
    assert {status for status, after in late if not after} <= {201, 422}
    changed = "SELECT updated_at FROM metastore.namespaces WHERE name = %s"
    slipped = f"""SELECT count(*) FROM metastore.records
        WHERE namespace = %s AND created_at > ({changed})"""
    assert value(meta.database, slipped, meta.namespace, meta.namespace) == 0


def test_a_hook_may_enrich_or_refuse_every_write(api: Api, http: httpx.Client) -> None:
    meta = Meta(http, api.database, f"hooked{new_namespace()}")
    for key in ("long-way", "quick-way"):
        made = meta.create(key, metadata={"n": 1}).json()
        assert made["metadata"] == {"n": 1, "stamped": True} and made["tags"] == ["a", "z"]
    before = meta.stored()
    assert meta.put("quick-way", metadata={"n": 1}).json()["version"] == 1
    for word, said in (("forbidden", "please"), ("crash", "log"), ("move", "log")):
        for answer in (
            meta.create("new", metadata={word: 1}),
            meta.put("quick-way", metadata={word: 1}),
            meta.patch("quick-way", metadata={word: 1}),
            meta.bulk({"op": "upsert", "key": "new", "metadata": {word: 1}}),
        ):
            assert answer.status_code == 422 and said in answer.json()["detail"], answer.text
    assert meta.stored() == before
    # What a hook makes of a write must fit the rules as well.
    meta.rules(allowedTags=["a"])
    assert paths(meta.put("quick-way", metadata={"n": 2})) == ["/tags"]
    assert meta.delete("quick-way").status_code == 200


def test_the_syncs_object_belongs_to_the_sync(api: Api, http: httpx.Client) -> None:
    meta = Meta(http, api.database, "filestore")
    view = {"nodeId": "n1", "path": "a", "version": 3}
    assert paths(meta.create("n0", metadata={"filestore": view})) == ["/metadata/filestore"]
    meta.create("n1", metadata={"mine": 1}, tags=["t"])
    _sync_writes(api, "n1", view)
    assert meta.rules(schema={**SCHEMA, "additionalProperties": False}).status_code == 200
    # Left out it stays, repeated it passes, and the schema does not see it.
    kept = meta.put("n1", metadata={"n": 1})
    assert kept.json()["metadata"] == {"n": 1, "filestore": view}
    assert meta.put("n1", metadata={"n": 2, "filestore": view}).status_code == 200
    assert meta.patch("n1", metadata={"n": 3}).json()["metadata"]["filestore"] == view
    for wrong in (None, {}, {**view, "path": "b"}, 1):
        assert paths(meta.put("n1", metadata={"n": 1, "filestore": wrong})) == [
            "/metadata/filestore"
        ]
    for wrong in (None, {"path": None}, {"path": "b"}, 1):
        assert paths(meta.patch("n1", metadata={"filestore": wrong})) == ["/metadata/filestore"]
    assert meta.patch("n1", metadata={"filestore": {"path": "a"}}).status_code == 200
    # A version from before the object came keeps today's.
    meta.rules()
    restored = meta.restore("n1", 1).json()
    assert restored["metadata"] == {"mine": 1, "filestore": view} and restored["tags"] == ["t"]
    other = Meta(http, api.database, new_namespace())
    assert other.put("n1", metadata={"filestore": 1}).status_code == 201


def _sync_writes(api: Api, key: str, view: dict[str, Any]) -> None:
    """As the sync does: it writes past the users' door, which is the only one that refuses."""
    with psycopg.connect(api.database) as conn:
        conn.execute(
            "UPDATE metastore.records SET metadata = metadata || %s WHERE key = %s",
            [Jsonb({"filestore": view}), key],
        )
