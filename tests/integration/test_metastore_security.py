"""The metastore's gate: scopes, namespaces a token has no right to, names and bodies that try to
pass."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.api import Api, own_api
from tests.support.metastore import ALL, BASE, Meta, new_namespace

READ, WRITE, DELETE, ADMIN = ALL


@pytest.fixture(scope="module")
def api(server_url: str) -> Iterator[Api]:
    with own_api(server_url, "inline") as api:
        yield api


@pytest.fixture(scope="module")
def theirs(api: Api) -> Iterator[Meta]:
    """A namespace with a record, and a token without limits."""
    with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=30) as client:
        meta = Meta(client, api.database, "theirs")
        meta.put("k", metadata={"secret": "x"}, tags=["t"])
        yield meta


@pytest.fixture
def meta(theirs: Meta) -> Meta:
    return Meta(theirs.http, theirs.database, new_namespace())


# Records tell of files, so a limit to mounts is one to the namespaces that are named, too.
@pytest.fixture(scope="module", params=[{"namespaces": ["their", "mine"]}, {"mounts": ["lake"]}])
def limited(api: Api, theirs: Meta, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    headers = api.bearer(*ALL, **request.param)
    with httpx.Client(base_url=api.url, headers=headers, timeout=30) as client:
        yield client


def calls(meta: Meta) -> dict[str, Callable[[], httpx.Response]]:
    """Every way to a record that is there."""
    return {
        READ: lambda: meta.get("k"),
        "audit": lambda: meta.http.get(meta.path("k", "/audit")),
        "deleted": lambda: meta.get("k", includeDeleted=True),
        "namespace": lambda: meta.http.get(f"{BASE}/namespaces/{meta.namespace}"),
        "patch": lambda: meta.patch("k", metadata={"x": 1}),
        DELETE: lambda: meta.delete("k"),
        "restore": lambda: meta.restore("k", 1),
        ADMIN: lambda: meta.purge("k"),
    }


def told(answer: httpx.Response) -> dict[str, Any]:
    found: dict[str, Any] = answer.json()
    found.pop("requestId")
    return found


def test_anothers_namespace_answers_as_one_that_is_not_there(
    theirs: Meta, limited: httpx.Client
) -> None:
    before = theirs.stored()
    forbidden = Meta(limited, theirs.database, "theirs")
    absent = Meta(limited, theirs.database, "mine")
    nowhere = Meta(theirs.http, theirs.database, "absent")
    for name, ask in calls(forbidden).items():
        answer = ask()
        assert answer.status_code == 404, name
        assert told(answer) == told(calls(absent)[name]()) == told(calls(nowhere)[name]()), name
    # To write where one has no right is refused, not answered by making it.
    for answer in (forbidden.put("k"), forbidden.create("k"), forbidden.rules()):
        assert answer.status_code == 404 and "namespace" in answer.json()["detail"]
    assert theirs.stored() == before
    assert limited.get(f"{BASE}/namespaces").json()["items"] == []


@pytest.mark.parametrize(
    "name",
    ["A", "a%20", "%EF%BD%81", "a%2f..%2fb", "a%00", "-a", "_a", "a.b", "x" * 64, "a%0a", "%ff"],
)
def test_what_is_no_namespace_is_refused_before_rights_are_asked(
    theirs: Meta, limited: httpx.Client, name: str
) -> None:
    for client in (limited, theirs.http):
        assert client.get(f"{BASE}/records/{name}/k").status_code == 422
        assert client.put(f"{BASE}/records/{name}/k", json={}).status_code == 422
    if "%" not in name:
        body = {"namespace": name, "key": "k"}
        assert limited.post(f"{BASE}/records", json=body).status_code == 422


@pytest.mark.parametrize("value", [None, 1, "", "*", ["mine"], {"a": 1}, "mine\n", "mine\x00"])
def test_a_namespace_is_a_plain_name(limited: httpx.Client, value: Any) -> None:
    answer = limited.post(f"{BASE}/records", json={"namespace": value, "key": "k"})
    assert answer.status_code == 422


def test_each_action_takes_its_scope(api: Api, theirs: Meta) -> None:
    before = theirs.stored()
    writes: dict[str, list[Callable[[Meta], httpx.Response]]] = {
        READ: [lambda m: m.get("k"), lambda m: m.http.get(m.path("k", "/audit"))],
        WRITE: [
            lambda m: m.create("new"),
            lambda m: m.put("k"),
            lambda m: m.patch("k"),
            lambda m: m.restore("k", 1),
        ],
        DELETE: [lambda m: m.delete("k")],
        ADMIN: [lambda m: m.purge("k"), lambda m: m.rules()],
    }
    for scope in ALL:
        with httpx.Client(base_url=api.url, headers=api.bearer(scope)) as client:
            meta = Meta(client, api.database, "theirs")
            refused = [ask for other, asks in writes.items() if other != scope for ask in asks]
            assert [ask(meta).status_code for ask in refused] == [403] * len(refused)
    assert theirs.stored() == before


def test_no_answer_shows_the_inside(theirs: Meta) -> None:
    odd = [
        theirs.get("'; DROP TABLE metastore.records; --"),
        theirs.put("k", {"If-Match": '"99999999999999"'}, metadata={}),
        theirs.http.get(f"{BASE}/namespaces", params={"cursor": "'; --"}),
        theirs.http.get(theirs.path("k", "/audit"), params={"limit": "0"}),
        theirs.http.request("DELETE", theirs.path("k", "/audit")),
        theirs.http.post(theirs.path("k")),
    ]
    for answer in odd:
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        for word in ("SELECT", "psycopg", "Traceback", ".py", 'metastore.records"'):
            assert word not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b'{"metadata":{"a":NaN}}',
        b'{"metadata":{"a":1,"a":2}}',
        b'{"metadata":{"a":"\\u0000"}}',
        b'{"metadata":{"a":"\\ud800"}}',
        b'{"metadata":{"a":1e999}}',
        b'{"metadata":{"a":9223372036854775808}}',
        b'{"metadata":{"a":' + b"[" * 64 + b"]" * 64 + b"}}",
        b'{"metadata":{"\xff":1}}',
        b"[" * 100_000,
        b"",
        b"[]",
        b'"x"',
    ],
)
def test_json_that_readers_read_differently_is_refused(meta: Meta, body: bytes) -> None:
    for kind in ("application/json", "text/plain"):
        answer = meta.http.put(meta.path("k"), content=body, headers={"Content-Type": kind})
        assert answer.status_code == 422, (kind, answer.text)
        answer = meta.http.patch(meta.path("k"), content=body, headers={"Content-Type": kind})
        assert answer.status_code == 422, (kind, answer.text)
    assert meta.stored() == (0, 0, 0)


@pytest.mark.parametrize(
    "key", ["", "a\x00", "a\nb", "\x7f", "\x85", "k" * 1025, "\U0001f600" * 600]
)
def test_what_is_no_key_is_refused(meta: Meta, key: str) -> None:
    assert meta.create(key).status_code == 422
    if key:
        assert meta.put(key).status_code == 422
    assert meta.stored() == (0, 0, 0)
