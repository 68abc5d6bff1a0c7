"""A subscriber's feed over HTTP: long polls of `/v1/subscriptions/{name}/next`."""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from tristore.events.cursors import From, Page
from tristore.events.log import Stored
from tristore.events.sdk.remote import Remote

# The platform answers an empty page after at most 20 s; what is later is an outage.
_SECONDS = 30.0


class HttpFeed:
    def __init__(
        self, url: str, token: str | None, name: str, types: tuple[str, ...], from_: From
    ) -> None:
        self._remote = Remote(url, token, seconds=_SECONDS)
        self._path = f"/v1/subscriptions/{quote(name, safe='')}"
        self._params = {"types": list(types), "from": from_}

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        await self._remote.close()

    async def next(self, limit: int, wait: float) -> Page:
        params = {**self._params, "limit": limit, "wait": wait}
        page = await self._remote.ask("GET", f"{self._path}/next", params=params)
        return Page([_stored(item) for item in page["items"]], page["sequence"])

    async def ack(self, sequence: int) -> None:
        await self._remote.ask("POST", f"{self._path}/ack", json={"sequence": sequence})

    async def forget(self) -> None:
        await self._remote.ask("DELETE", self._path)


def _stored(item: dict[str, Any]) -> Stored:
    return Stored(
        ingress_sequence=item["ingressSequence"],
        id=item["id"],
        type=item["type"],
        source=item["source"],
        occurred_at=datetime.fromisoformat(item["occurredAt"]),
        received_at=datetime.fromisoformat(item["receivedAt"]),
        payload=item["payload"],
        correlation_id=item["correlationId"],
        ttl_ms=item["ttl"],
        metadata=item["metadata"],
        schema_version=item["schemaVersion"],
    )
