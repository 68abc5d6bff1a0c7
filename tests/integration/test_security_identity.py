"""Who gets in (S1-S8, S12, S13), on HTTP and before a socket opens."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import psycopg
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.support.api import Api, make_token, own_api
from tests.support.parts import environment
from tests.support.waiting import until

EVENT = {"type": "a.b.c", "source": "s", "payload": {}}


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as api:
        yield api


async def socket_status(api: Api, path: str, **headers: str) -> int:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{api.ws}{path}", additional_headers=headers)
    response = refused.value.response
    assert response.headers["content-type"] == "application/problem+json"
    assert json.loads(response.body or b"")["detail"]
    return int(response.status_code)


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer null", "Bearer undefined", "Basic dTpw", "tri_x"],
)
@pytest.mark.parametrize("path", ["/", "/v1/events", "/admin/x/healthz", "/readyz/", "//healthz"])
async def test_no_token_no_answer(api: Api, header: str | None, path: str) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = httpx.get(f"{api.url}{path}", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert await socket_status(api, "/ws", **headers) == 403


async def test_an_ended_token_is_no_token(api: Api) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    expired = api.bearer("events:read", expires_at=past)
    assert httpx.get(f"{api.url}/openapi.json", headers=expired).status_code == 401
    assert await socket_status(api, "/ws", **expired) == 403


async def test_a_foreign_page_opens_no_socket(api: Api) -> None:
    reader = api.bearer("events:read")
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "file://"):
        assert await socket_status(api, "/ws", **reader, Origin=origin) == 403
    async with connect(f"{api.ws}/ws", additional_headers={**reader, "Origin": api.url}) as socket:
        assert json.loads(await socket.recv())["kind"] == "position"


async def test_an_origin_on_the_list_may(server_url: str, redis_url: str) -> None:
    listed = {"TRISTORE_HTTP__ALLOWED_ORIGINS": "https://console.example"}
    with own_api(server_url, redis_url, **listed) as api:
        headers = {**api.bearer("events:read"), "Origin": "https://console.example"}
        async with connect(f"{api.ws}/ws", additional_headers=headers) as socket:
            assert json.loads(await socket.recv())["kind"] == "position"
        headers["Origin"] = "https://console.example.evil.example"
        assert await socket_status(api, "/ws", **headers) == 403


def test_two_authorization_headers_are_refused(api: Api) -> None:
    good = api.bearer("events:read")["Authorization"]
    for second in (good, "Bearer other"):
        headers = [("Authorization", good), ("Authorization", second)]
        assert httpx.get(f"{api.url}/openapi.json", headers=headers).status_code == 400


async def test_a_token_in_the_url_is_refused(api: Api) -> None:
    token = make_token(api.database, "events:read")
    good = {"Authorization": f"Bearer {token}"}
    for name in ("token", "access_token"):
        for headers in ({}, good):
            path = f"/openapi.json?{name}={token}"
            assert httpx.get(f"{api.url}{path}", headers=headers).status_code == 401
        assert await socket_status(api, f"/ws?{name}={token}") == 403


def test_a_scope_too_little_changes_nothing(api: Api) -> None:
    before = api.stored()
    for scope in ("events:read", "events:admin", "filestore:write"):
        answer = httpx.post(f"{api.url}/v1/events", json=EVENT, headers=api.bearer(scope))
        assert answer.status_code == 403
        assert "events:publish" in answer.json()["detail"]
    with psycopg.connect(api.database, autocommit=True) as conn:
        conn.execute(
            "INSERT INTO bus.dead_letters (reason, errors, raw, raw_hash)"
            " VALUES ('x', '[]', 'x', 'x')"
        )
    for path in ("/admin/dead-letters/1/replay", "/admin/dead-letters/replay"):
        answer = httpx.post(f"{api.url}{path}", json={}, headers=api.bearer("events:read"))
        assert answer.status_code == 403
    assert api.stored() == before + 1


async def test_a_revoked_token_stops_working(api: Api) -> None:
    headers = api.bearer("events:read")
    assert httpx.get(f"{api.url}/openapi.json", headers=headers).status_code == 200
    with psycopg.connect(api.database, autocommit=True) as conn:
        conn.execute("UPDATE bus.tokens SET revoked_at = now()")

    async def refused() -> bool:
        return httpx.get(f"{api.url}/openapi.json", headers=headers).status_code == 401

    await until(refused)


@pytest.mark.parametrize("password", ["", "postgres", "tristore", "password", "changeme"])
def test_a_server_open_to_the_network_wants_a_real_database_password(
    api: Api, password: str
) -> None:
    env = environment(api.settings) | {
        "TRISTORE_HOST": "0.0.0.0",
        "TRISTORE_DATABASE_URL": f"postgresql://tristore:{password}@127.0.0.1:1/tristore",
    }
    command = [sys.executable, "-m", "tristore", "serve"]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    (line,) = ended.stderr.strip().splitlines()
    assert "password" in line
