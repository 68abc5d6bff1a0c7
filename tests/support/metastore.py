"""The metastore as a client sees it, and what its tables and the outbox say."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from tests.support.database import rows, value

ALL = ("metastore:read", "metastore:write", "metastore:delete", "metastore:admin")
BASE = "/metastore/v1"


@dataclass(frozen=True)
class Meta:
    """One token's view of one namespace."""

    http: httpx.Client
    database: str
    namespace: str

    def path(self, key: str, part: str = "") -> str:
        return f"{BASE}/records/{self.namespace}/{quote(key, safe='')}{part}"

    def create(self, key: str, headers: dict[str, str] | None = None, **body: Any) -> Any:
        given = {"namespace": self.namespace, "key": key, **body}
        return self.http.post(f"{BASE}/records", json=given, headers=headers)

    def get(self, key: str, **params: Any) -> httpx.Response:
        return self.http.get(self.path(key), params=params)

    def put(self, key: str, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        return self.http.put(self.path(key), json=body, headers=headers)

    def patch(self, key: str, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        return self.http.patch(self.path(key), json=body, headers=headers)

    def delete(self, key: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.http.delete(self.path(key), headers=headers)

    def restore(
        self, key: str, version: Any, headers: dict[str, str] | None = None
    ) -> httpx.Response:
        return self.http.post(
            self.path(key, "/restore"), json={"version": version}, headers=headers
        )

    def purge(self, key: str, headers: dict[str, str] | None = None) -> httpx.Response:
        return self.http.delete(self.path(key, "/purge"), headers=headers)

    def audit(self, key: str, **params: Any) -> Any:
        answer = self.http.get(self.path(key, "/audit"), params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def rules(self, headers: dict[str, str] | None = None, **rules: Any) -> httpx.Response:
        return self.http.put(f"{BASE}/namespaces/{self.namespace}", json=rules, headers=headers)

    def bulk(self, *items: dict[str, Any], mode: str = "atomic", **headers: str) -> httpx.Response:
        given = [{"namespace": self.namespace, **item} for item in items]
        body = {"mode": mode, "items": given}
        return self.http.post(f"{BASE}/records/bulk", json=body, headers=headers)

    def events(self, key: str) -> list[dict[str, Any]]:
        """What the outbox was told about a record, in order."""
        found = rows(
            self.database,
            "SELECT envelope::jsonb AS event FROM bus.outbox WHERE envelope::jsonb"
            " -> 'payload' ->> 'namespace' = %s AND envelope::jsonb -> 'payload' ->> 'key' = %s"
            " ORDER BY id",
            self.namespace,
            key,
        )
        return [row["event"] for row in found]

    def stored(self) -> tuple[int, int, int]:
        """Records, audit rows and events of the namespace: a refusal leaves them as they were."""
        count = "SELECT count(*) FROM {} WHERE {} = %s"
        told = "(envelope::jsonb -> 'payload' ->> 'namespace')"
        tables = [
            ("metastore.records", "namespace"),
            ("metastore.record_audits", "namespace"),
            ("bus.outbox", told),
        ]
        found = (value(self.database, count.format(*t), self.namespace) for t in tables)
        a, b, c = map(int, found)
        return a, b, c


def new_namespace() -> str:
    return f"ns{uuid4().hex[:12]}"
