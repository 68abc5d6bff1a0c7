"""While the bus is away, the metrics page tells whose events wait."""

import asyncio
from collections import Counter
from typing import Any

from httpx import AsyncClient

from tests.integration.test_metrics import page
from tests.support.api import own_api
from tests.support.waiting import until
from tristore.wiring import open_relay

SOURCES = Counter({"filestore.api": 3, "metastore.api": 2})
# Nobody listens on this port.
NOWHERE = "redis://127.0.0.1:1"


async def test_waiting_events_and_failed_sends_are_counted_by_source(
    server_url: str, redis_url: str
) -> None:
    with own_api(server_url, redis_url) as api:
        headers = api.bearer("events:read", "events:publish")
        away = api.settings.model_copy(update={"redis_url": NOWHERE})
        async with (
            AsyncClient(base_url=api.url, headers=headers, timeout=60) as client,
            open_relay(away) as relay,
        ):
            events = [{"type": "a.b.c", "source": s, "payload": {}} for s in SOURCES.elements()]
            assert (await client.post("/v1/events", json=events)).status_code == 202
            running = asyncio.create_task(relay.run())

            async def shown() -> bool:
                found = await page(client)
                waiting = labelled(found, "tristore_outbox_waiting_events")
                failed = labelled(found, "tristore_outbox_failed_sends")
                return waiting == SOURCES and all(failed.get(s, 0) >= n for s, n in SOURCES.items())

            await until(shown)
            assert (await page(client))['tristore_outbox_events{state="pending"}'] == 5
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def labelled(found: dict[str, float], name: str) -> dict[str, Any]:
    return {key.split('"')[1]: value for key, value in found.items() if key.startswith(f"{name}{{")}
