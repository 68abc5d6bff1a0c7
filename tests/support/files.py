"""A filestore over HTTP: a mount in a folder of its own, and the requests a test makes of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.support.api import Api
from tests.support.database import rows
from tests.support.waiting import wait_until

ROOT = "/filestore/v1"
SCOPES = ("filestore:read", "filestore:write", "filestore:admin")


@dataclass(frozen=True)
class Files:
    """`client` may do everything; `folder` is where the mount lies."""

    api: Api
    client: httpx.Client
    mount: str
    folder: Path

    @classmethod
    def make(cls, api: Api, client: httpx.Client, folder: Path, **spec: Any) -> "Files":
        name = f"m{uuid4().hex[:12]}"
        root = folder / name
        root.mkdir()
        body = {"name": name, "kind": "local", "root": str(root), **spec}
        made = client.post(f"{ROOT}/mounts", json=body)
        assert made.status_code == 201, made.text
        return cls(api, client, name, root)

    def url(self, path: str) -> str:
        return f"{ROOT}/files/{self.mount}/{path}"

    def put(self, path: str, content: bytes = b"content", **headers: str) -> httpx.Response:
        return self.client.put(self.url(path), content=content, headers=_dashed(headers))

    def stored(self, path: str, content: bytes = b"content") -> dict[str, Any]:
        answer = self.put(path, content)
        assert answer.status_code in (200, 201), answer.text
        return dict(answer.json()["node"])

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(self.url(path), headers=_dashed(headers))

    def command(self, command: str, path: str, **fields: Any) -> httpx.Response:
        headers = _dashed(fields.pop("headers", {}))
        body = {"command": command, "mount": self.mount, "path": path, **fields}
        return self.client.post(f"{ROOT}/commands", json=body, headers=headers)

    def node(self, path: str) -> dict[str, Any]:
        params = {"mount": self.mount, "path": path}
        answer = self.client.get(f"{ROOT}/nodes/by-path", params=params)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def rollup(self, path: str = "") -> tuple[int, int, int]:
        """Bytes, files, directories."""
        sums = self.node(path)["rollup"]
        return sums["sizeBytes"], sums["files"], sums["directories"]

    def listed(self, what: str = "/nodes", **params: Any) -> list[dict[str, Any]]:
        """Every item of every page."""
        given = {"mount": self.mount, **params} if what == "/nodes" else dict(params)
        found: list[dict[str, Any]] = []
        while True:
            page = self.client.get(ROOT + what, params=given)
            assert page.status_code == 200, page.text
            found += page.json()["items"]
            if page.json()["nextCursor"] is None:
                return found
            given["cursor"] = page.json()["nextCursor"]

    def finished(self, path: str) -> dict[str, Any]:
        """A journal entry or a job, once it has ended."""

        def look() -> dict[str, Any] | None:
            found = dict(self.client.get(path).json())
            return found if found["state"] in ("completed", "failed") else None

        return wait_until(look) or {}

    def event(self, type: str, correlation_id: str) -> dict[str, Any]:
        """The first such event in the log, once it is there."""
        query = """
            SELECT * FROM bus.workflow_events
            WHERE type = %s AND correlation_id = %s ORDER BY ingress_sequence LIMIT 1
        """
        found = wait_until(lambda: rows(self.api.database, query, type, correlation_id))
        return found[0]


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    """`if_match` as it is written in a request."""
    return {name.replace("_", "-"): value for name, value in headers.items()}
