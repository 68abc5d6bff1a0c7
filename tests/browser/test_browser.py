"""A person with a browser: logs in with a token, reads the reference, watches the log live."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.browser import chromium
from tests.support.api import Api, make_token, own_api
from tests.support.waiting import until


class Browser(Protocol):
    async def log_in(self, token: str) -> None: ...
    async def reference(self) -> str: ...
    async def cookies_in_scripts(self) -> str: ...
    async def publish_and_watch(self) -> dict[str, Any]: ...
    async def write_from_elsewhere(self) -> None: ...


class Real:
    """The pages as they are, in Chromium."""

    def __init__(self, page: chromium.Chromium, api: Api) -> None:
        self._page = page
        self._api = api

    async def log_in(self, token: str) -> None:
        await self._page.open(f"{self._api.url}/docs")
        await self._page.until("document.getElementById('token') !== null")
        await self._page.run(
            f"document.getElementById('token').value = {json.dumps(token)};"
            "document.querySelector('#login button').click()"
        )

    async def reference(self) -> str:
        await self._page.until("document.getElementById('operations')?.dataset.shown === 'yes'")
        return str(await self._page.run("document.body.innerText"))

    async def cookies_in_scripts(self) -> str:
        return str(await self._page.run("document.cookie"))

    async def publish_and_watch(self) -> dict[str, Any]:
        return json.loads(await self._page.run(WATCH))  # type: ignore[no-any-return]

    async def write_from_elsewhere(self) -> None:
        await self._page.open("about:blank")
        script = (
            f"fetch('{self._api.url}/v1/tickets', {{method: 'POST', credentials: 'include',"
            " mode: 'no-cors'}).then(() => 'sent', () => 'failed')"
        )
        await self._page.until(script)


class StandIn:
    """The same requests, where there is no browser: cookies kept, Origin sent as a page would."""

    def __init__(self, client: httpx.AsyncClient, api: Api) -> None:
        self._client = client
        self._api = api

    async def log_in(self, token: str) -> None:
        page = await self._client.get("/docs", headers={"Accept": "text/html"})
        assert 'id="login"' in page.text
        bearer = {"Authorization": f"Bearer {token}", "Origin": self._api.url}
        assert (await self._client.post("/v1/session", headers=bearer)).status_code == 201

    async def reference(self) -> str:
        page = (await self._client.get("/docs", headers={"Accept": "text/html"})).text
        assert "/docs/page.js" in page
        assert (await self._client.get("/docs/page.js")).status_code == 200
        return "\n".join((await self._client.get("/openapi.json")).json()["paths"])

    async def cookies_in_scripts(self) -> str:
        jar = self._client.cookies.jar
        return "; ".join(c.name for c in jar if not c.has_nonstandard_attr("HttpOnly"))

    async def publish_and_watch(self) -> dict[str, Any]:
        own = {"Origin": self._api.url}
        ticket = (await self._client.post("/v1/tickets", headers=own)).json()["ticket"]
        address = f"{self._api.ws}/ws?ticket={ticket}&type=browser.*"
        async with connect(address, additional_headers=own) as socket:
            await socket.recv()
            await self._client.post("/v1/events", json=EVENT, headers=own)
            return json.loads(await socket.recv())  # type: ignore[no-any-return]

    async def write_from_elsewhere(self) -> None:
        await self._client.post("/v1/tickets", headers={"Origin": "null"})


EVENT = {"type": "browser.button.pressed", "source": "page", "payload": {"n": 1}}
WATCH = f"""
(async () => {{
  const ticket = (await (await fetch("/v1/tickets", {{ method: "POST" }})).json()).ticket;
  const address = location.origin.replace("http", "ws") + "/ws?type=browser.*&ticket=" + ticket;
  const socket = new WebSocket(address);
  return await new Promise((resolve, reject) => {{
    socket.onerror = () => reject("no socket");
    socket.onmessage = (message) => {{
      if (JSON.parse(message.data).kind === "event") {{ resolve(message.data); return; }}
      fetch("/v1/events", {{ method: "POST", headers: {{ "Content-Type": "application/json" }},
        body: JSON.stringify({json.dumps(EVENT)}) }});
    }};
  }});
}})()
"""


@pytest.fixture
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress") as api:
        yield api


@pytest.fixture
async def browser(api: Api, tmp_path: Path) -> AsyncIterator[Browser]:
    if program := chromium.found():
        async with chromium.Chromium(program, tmp_path) as page:
            yield Real(page, api)
    else:
        async with httpx.AsyncClient(base_url=api.url) as client:
            yield StandIn(client, api)


@pytest.fixture
async def stand_in(api: Api) -> AsyncIterator[Browser]:
    async with httpx.AsyncClient(base_url=api.url) as client:
        yield StandIn(client, api)


async def walk_through(browser: Browser, api: Api) -> None:
    await browser.log_in(make_token(api.database, "events:read", "events:publish"))
    shown = await browser.reference()
    assert "/v1/events" in shown
    assert "/admin/dead-letters" in shown
    assert "tristore_session" not in await browser.cookies_in_scripts()
    frame = await browser.publish_and_watch()
    assert frame["event"]["payload"] == EVENT["payload"]
    before = api.rows("tickets")
    await browser.write_from_elsewhere()
    assert api.rows("tickets") == before


async def test_a_person_logs_in_reads_and_watches(browser: Browser, api: Api) -> None:
    await walk_through(browser, api)


async def test_a_client_that_behaves_like_a_browser_can_too(stand_in: Browser, api: Api) -> None:
    await walk_through(stand_in, api)


async def test_a_wrong_token_is_told(api: Api, tmp_path: Path) -> None:
    program = chromium.found()
    if program is None:
        bearer = {"Authorization": "Bearer wrong"}
        assert httpx.post(f"{api.url}/v1/session", headers=bearer).status_code == 401
        return
    async with chromium.Chromium(program, tmp_path) as page:
        await Real(page, api).log_in("wrong")

        async def told() -> bool:
            shown = await page.run("document.getElementById('problem')?.textContent")
            return "unknown, revoked or expired" in (shown or "")

        await until(told)
