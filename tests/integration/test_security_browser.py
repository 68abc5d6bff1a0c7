"""Sessions and tickets: what a browser holds, and what it cannot be made to do with it."""

import asyncio
import json
from collections.abc import Iterator

import httpx
import psycopg
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.support.api import Api, own_api
from tests.support.database import value
from tristore.browser_sessions import COOKIE

EVENT = {"type": "a.b.c", "source": "s", "payload": {}}


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url) as api:
        yield api


@pytest.fixture
def browser(api: Api) -> Iterator[httpx.Client]:
    """A client with a session, and without the token."""
    headers = api.bearer("events:read", "events:publish")
    with httpx.Client(base_url=api.url) as browser:
        opened = browser.post("/v1/session", headers=headers)
        assert opened.status_code == 201
        assert set(opened.json()) == {"name", "expiresAt"}
        attributes = opened.headers["set-cookie"].lower()
        assert "httponly" in attributes
        assert "samesite=strict" in attributes
        assert "path=/" in attributes
        yield browser


def test_a_session_reads_and_ends(api: Api, browser: httpx.Client) -> None:
    assert browser.get("/openapi.json").status_code == 200
    cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    assert browser.delete("/v1/session", headers={"Origin": api.url}).status_code == 204
    assert COOKIE not in browser.cookies
    assert httpx.get(f"{api.url}/openapi.json", headers=cookie).status_code == 401


def test_only_hashes_are_kept(api: Api, browser: httpx.Client) -> None:
    ticket = browser.post("/v1/tickets", headers={"Origin": api.url}).json()["ticket"]
    kept = value(
        api.database,
        "SELECT string_agg(encode(hash, 'escape'), ' ')"
        " FROM (SELECT hash FROM bus.sessions UNION ALL SELECT hash FROM bus.tickets) AS h",
    )
    assert browser.cookies[COOKIE] not in kept
    assert ticket not in kept


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_a_foreign_page_cannot_write_with_the_cookie(
    api: Api, browser: httpx.Client, headers: dict[str, str]
) -> None:
    before = api.stored()
    for method, path in (
        ("POST", "/v1/events"),
        ("POST", "/v1/tickets"),
        ("DELETE", "/v1/session"),
    ):
        assert browser.request(method, path, headers=headers).status_code == 403
    assert api.stored() == before
    assert browser.get("/openapi.json").status_code == 200


def test_our_own_page_can(api: Api, browser: httpx.Client) -> None:
    answer = browser.post("/v1/events", json=EVENT, headers={"Origin": api.url})
    assert answer.status_code == 202


def test_a_session_makes_no_session(api: Api, browser: httpx.Client) -> None:
    assert browser.post("/v1/session", headers={"Origin": api.url}).status_code == 403


def test_a_session_ends_with_its_token_and_with_time(api: Api, browser: httpx.Client) -> None:
    for change in (
        "UPDATE bus.sessions SET expires_at = now()",
        "UPDATE bus.sessions SET expires_at = now() + interval '1 hour'",
        "UPDATE bus.tokens SET revoked_at = now()",
    ):
        with psycopg.connect(api.database, autocommit=True) as conn:
            conn.execute(change)
        expected = 200 if "1 hour" in change else 401
        assert browser.get("/openapi.json").status_code == expected, change


async def test_a_ticket_opens_one_socket_once(api: Api, browser: httpx.Client) -> None:
    ticket = browser.post("/v1/tickets", headers={"Origin": api.url}).json()["ticket"]
    address = f"{api.ws}/ws?ticket={ticket}"
    attempts = await asyncio.gather(*(connect(address) for _ in range(5)), return_exceptions=True)
    refused = [one for one in attempts if isinstance(one, InvalidStatus)]
    (opened,) = [one for one in attempts if not isinstance(one, BaseException)]
    assert len(refused) == 4
    assert json.loads(await opened.recv())["kind"] == "position"
    await opened.close()


async def test_a_ticket_too_old_or_from_elsewhere_opens_none(
    api: Api, browser: httpx.Client
) -> None:
    for headers in ({}, {"Origin": "https://evil.example"}):
        ticket = browser.post("/v1/tickets", headers={"Origin": api.url}).json()["ticket"]
        if not headers:
            with psycopg.connect(api.database, autocommit=True) as conn:
                conn.execute("UPDATE bus.tickets SET expires_at = now()")
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{api.ws}/ws?ticket={ticket}", additional_headers=headers)
        assert refused.value.response.status_code == 403


def test_a_ticket_is_good_for_nothing_else(api: Api, browser: httpx.Client) -> None:
    ticket = browser.post("/v1/tickets", headers={"Origin": api.url}).json()["ticket"]
    assert httpx.get(f"{api.url}/openapi.json?ticket={ticket}").status_code == 401
    bearer = {"Authorization": f"Bearer {ticket}"}
    assert httpx.get(f"{api.url}/openapi.json", headers=bearer).status_code == 401


async def test_a_cookie_opens_a_socket_for_our_own_page_only(
    api: Api, browser: httpx.Client
) -> None:
    cookie = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
    for origin in ({}, {"Origin": "https://evil.example"}):
        with pytest.raises(InvalidStatus):
            await connect(f"{api.ws}/ws", additional_headers={**cookie, **origin})
    async with connect(f"{api.ws}/ws", additional_headers={**cookie, "Origin": api.url}) as socket:
        assert json.loads(await socket.recv())["kind"] == "position"


def test_a_person_without_a_session_is_shown_the_login(api: Api, browser: httpx.Client) -> None:
    page = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path in ("/", "/docs", "/nowhere"):
        answer = httpx.get(f"{api.url}{path}", headers=page)
        assert answer.status_code == 401
        assert answer.headers["content-type"].startswith("text/html")
        assert "/v1/session" in answer.text
    for path in ("/", "/docs"):
        answer = browser.get(path, headers=page)
        assert answer.status_code == 200
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "://" not in answer.text  # nothing is loaded from elsewhere
