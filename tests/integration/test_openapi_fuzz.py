"""Every operation of the OpenAPI document, asked with what its schemas allow and what they do not:
never a 5xx, and every refusal is a problem document."""

import json
import os
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.api import Api, own_api
from tristore.config import Settings
from tristore.server import create_app
from tristore.tokens import SCOPES

API = create_app(Settings()).openapi()
OPERATIONS = [
    (method, path, operation)
    for path, item in API["paths"].items()
    for method, operation in item.items()
    if path not in ("/readyz", "/v1/session")  # red is its job; a cookie would change the rest
]
# A long run by hand: FUZZ_EXAMPLES=5000.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "12"))


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, TRISTORE_HTTP__SOCKETS_PER_TOKEN="1000") as api:
        yield api


@pytest.fixture(scope="module")
def client(api: Api) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=api.url, headers=api.bearer(*SCOPES), timeout=30) as client:
        yield client


NUMBERS = st.sampled_from(["", "0", "-1", "1e9", str(2**63), "9" * 400, "2026-11-15T00:00:00Z"])
WORDS = st.sampled_from(["null", "*", "a.*", "..", "$.a.b", "$..**", "'; --", "a" * 3000])
ODD = st.sampled_from(["%00", "\x00", "\u202e", "\U0001f600", "\xff"])
TEXT = NUMBERS | WORDS | ODD | st.text(max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = API["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What the schema allows, roughly, and now and then what it does not."""
    schema = resolved(schema)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return st.one_of(*map(values, choices)) | JSON
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | TEXT
    kind = schema.get("type")
    if kind == "object":
        fields = {name: values(field) for name, field in schema.get("properties", {}).items()}
        required = {n: s for n, s in fields.items() if n in schema.get("required", ())}
        optional = {n: s for n, s in fields.items() if n not in required}
        return st.fixed_dictionaries(required, optional=optional) | JSON
    if kind == "array":
        return st.lists(values(schema.get("items", {})), max_size=4) | JSON
    simple = {"integer": st.integers(), "number": st.floats(allow_nan=False), "string": TEXT}
    return simple.get(str(kind), JSON) | JSON


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def calls(path: str, operation: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    places: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
    for parameter in operation.get("parameters", ()):
        places[parameter["in"]][parameter["name"]] = values(parameter["schema"]).map(as_text)
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    return st.fixed_dictionaries(
        {
            "path": st.fixed_dictionaries(places["path"]),
            "query": st.fixed_dictionaries({}, optional=places["query"]),
            "header": st.fixed_dictionaries({}, optional=places["header"]),
            "body": values(schema) | JSON,
        }
    )


@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=[f"{m} {p}" for m, p, _ in OPERATIONS]
)
def test_nothing_that_is_asked_breaks_the_server(
    client: httpx.Client, api: Api, method: str, path: str, operation: dict[str, Any]
) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize="FUZZ_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(calls(path, operation))
    def check(call: dict[str, Any]) -> None:
        status, kind, text = ask(client, method, path, call)
        assert status < 500, (status, text, call)
        assert status < 400 or kind == "application/problem+json", (status, kind, call)

    check()
    with psycopg.connect(api.database) as conn:  # the server is there, and so is its log
        assert conn.execute("SELECT last FROM bus.ingress_head").fetchone() is not None
    assert client.get("/healthz").status_code == 200


def ask(
    client: httpx.Client, method: str, path: str, call: dict[str, Any]
) -> tuple[int, str | None, str]:
    for name, value in call["path"].items():
        path = path.replace(f"{{{name}}}", percent(value))
    headers = {name: percent(value) for name, value in call["header"].items()}
    query = dict(call["query"])
    query.pop("token", None)
    if path.endswith("/next"):
        query["wait"] = "0"
    url = client.base_url.join(path or "/")
    sent: dict[str, Any] = {}
    if method in ("post", "put", "patch"):
        sent["content"] = json.dumps(call["body"]).encode()
        headers["Content-Type"] = "application/json"
    with client.stream(method.upper(), url, params=query, headers=headers, **sent) as answer:
        stream = answer.headers.get("content-type", "").startswith("text/event-stream")
        text = "" if stream else answer.read()[:300].decode(errors="replace")
        return answer.status_code, answer.headers.get("content-type"), text


def percent(value: str) -> str:
    return "".join(f"%{byte:02x}" for byte in value.encode("utf-8", "replace")) or "-"
