"""A real browser, driven over its debugging socket: open a page, run a script in it, wait."""

import asyncio
import itertools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
_ADDRESS = re.compile(rb"DevTools listening on (ws://\S+)")


def found() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    def __init__(self, program: str, folder: Path) -> None:
        self._log = folder / "chromium.log"
        options = ["--headless", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run"]
        # Its sandbox wants an ordinary user.
        options += ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *options, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._numbers = itertools.count(1)
        self._socket: ClientConnection | None = None
        self._session = ""

    async def __aenter__(self) -> "Chromium":
        self._socket = await connect(await self._address(), max_size=None, compression=None)
        target = await self._call("Target.createTarget", {"url": "about:blank"})
        attached = await self._call("Target.attachToTarget", {**target, "flatten": True})
        self._session = attached["sessionId"]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._socket is not None
        await self._socket.close()
        self._process.terminate()
        await asyncio.to_thread(self._process.wait, 20)

    async def open(self, url: str) -> None:
        await self._call("Page.navigate", {"url": url})

    async def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = await self._call(
            "Runtime.evaluate",
            {
                "expression": script,
                "awaitPromise": True,
                "returnByValue": True,
                "userGesture": True,
            },
        )
        return answer.get("result", {}).get("value")

    async def until(self, script: str, seconds: float = 30) -> Any:
        async with asyncio.timeout(seconds):
            while not (value := await self.run(script)):
                await asyncio.sleep(0.05)
            return value

    async def _call(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        assert self._socket is not None
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(await self._socket.recv())
            if answer.get("id") == number:
                found: dict[str, Any] = answer.get("result", {})
                return found

    async def _address(self) -> str:
        async with asyncio.timeout(60):
            while not (match := _ADDRESS.search(self._log.read_bytes())):
                assert self._process.poll() is None, self._log.read_text()
                await asyncio.sleep(0.05)
        return match[1].decode()
