"""The filestore as the command line asks for it: nodes, commands, and work that takes long."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tristore.cli.client import Client, read_answer
from tristore.cli.fs_place import Place
from tristore.errors import Terminal

if TYPE_CHECKING:
    import httpx

ROOT = "/filestore/v1"
# From quick to patient: most commands end at once, some take hours.
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.5)
_UNDER_WAY = ("applying", "queued", "running")
Watch = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class FsClient:
    """One connection for the many small questions of one command."""

    http: "httpx.Client"

    @classmethod
    @contextmanager
    def find(
        cls, url: str | None, token: str | None, data_dir: Path | None
    ) -> "Iterator[FsClient]":
        with Client.find(url, token, data_dir).http() as http:
            yield cls(http)

    def get(self, address: str, /, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return read_answer(self.http.get(ROOT + address, params=given))

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return read_answer(self.http.post(ROOT + path, json=body, headers=headers))

    def node(self, place: Place) -> dict[str, Any]:
        found = self.get("/nodes/by-path", mount=place.mount, path=place.path)
        return dict(found)

    def children(
        self, node: dict[str, Any], limit: int, cursor: str | None = None
    ) -> dict[str, Any]:
        return dict(self.get(f"/nodes/{node['id']}/children", limit=limit, cursor=cursor))

    def command(self, body: dict[str, Any], watch: Watch) -> dict[str, Any]:
        """Sent with a key, so that trying again is safe; followed in the journal to its end."""
        headers = {"Prefer": "respond-async", "Idempotency-Key": uuid4().hex}
        answer = self.post("/commands", body, **headers)
        entry = self.follow(f"/journal/{answer['journalId']}", watch)
        node = self.get(f"/nodes/{entry['nodeId']}") if entry["nodeId"] else answer.get("node")
        return {"node": node, "journalId": entry["id"], "nodesAffected": entry["nodesAffected"]}

    def follow(self, path: str, watch: Watch) -> dict[str, Any]:
        """Asks until it is done; `watch` sees each answer."""
        tries = 0
        while True:
            found: dict[str, Any] = self.get(path)
            watch(found)
            if found["state"] == "failed":
                raise Terminal(found["error"] or "it failed; the platform's log says why")
            if found["state"] not in _UNDER_WAY:
                return found
            time.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1
