"""The timestore as a client sees it: datasets of a test's own, and rows for them."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx

ALL = ("timestore:read", "timestore:write", "timestore:admin")
BASE = "/timestore/v1"
WEATHER = [
    {"name": "at", "type": "timestamp"},
    {"name": "station", "type": "string", "nullable": False},
    {"name": "celsius", "type": "double"},
]


def new_slug() -> str:
    return f"d_{uuid4().hex[:12]}"


def weather(slug: str, **changed: Any) -> dict[str, Any]:
    return {"slug": slug, "timeColumn": "at", "granularity": "day", "schema": WEATHER, **changed}


@dataclass(frozen=True)
class Set:
    """One token's view of one dataset."""

    http: httpx.Client
    slug: str

    @classmethod
    def make(cls, http: httpx.Client, **changed: Any) -> "Set":
        made = cls(http, new_slug())
        answer = http.post(f"{BASE}/datasets", json=weather(made.slug, **changed))
        assert answer.status_code == 201, answer.text
        return made

    @property
    def path(self) -> str:
        return f"{BASE}/datasets/{self.slug}"

    def get(self) -> dict[str, Any]:
        answer = self.http.get(self.path)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def columns(self) -> dict[str, str]:
        return {column["name"]: column["type"] for column in self.get()["schema"]}

    def patch(self, headers: dict[str, str] | None = None, **change: Any) -> httpx.Response:
        return self.http.patch(self.path, json=change, headers=headers)

    def rows(self, *rows: Any, **params: Any) -> httpx.Response:
        return self.http.post(f"{self.path}/ingest", json={"rows": rows}, params=params)

    def send(
        self, body: bytes, media: str, headers: dict[str, str] | None = None, **params: Any
    ) -> httpx.Response:
        given = {"Content-Type": media, **(headers or {})}
        return self.http.post(f"{self.path}/ingest", content=body, headers=given, params=params)


def faults(answer: httpx.Response) -> list[str]:
    """The paths of what a 422 complains about."""
    assert answer.status_code == 422, answer.text
    return [error["path"] for error in answer.json()["errors"]]
