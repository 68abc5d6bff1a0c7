"""The metrics page: what it shows is so, and every alert speaks of a metric there is."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from httpx import AsyncClient
from websockets.asyncio.client import connect

from tests.support.api import Api, own_api
from tests.support.waiting import until

ALERTS = Path(__file__).parents[2] / "deploy" / "alerts.yml"
SAMPLE = re.compile(r'[a-z_]+(\{([a-z]+="(\\.|[^"\\])*",?)+\})? -?[0-9.e+-]+(inf|nan)?')


@pytest.fixture(scope="module")
def api(server_url: str, redis_url: str) -> Iterator[Api]:
    with own_api(server_url, redis_url, workers="relay,ingress") as api:
        yield api


async def page(client: AsyncClient) -> dict[str, float]:
    """Samples by name and labels, from a page every line of which must parse."""
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples)
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in samples)}


async def test_the_page_shows_what_happened(api: Api) -> None:
    headers = api.bearer("events:read", "events:publish")
    async with AsyncClient(base_url=api.url, headers=headers, timeout=60) as client:
        await page(client)  # events by source are counted from the first look on
        events = [{"type": "a.b.c", "source": 'odd "source"', "payload": {}} for _ in range(7)]
        assert (await client.post("/v1/events", json=events)).status_code == 202
        with psycopg.connect(api.database, autocommit=True) as conn:
            conn.execute(
                "INSERT INTO bus.dead_letters (reason, source, errors, raw, raw_hash)"
                " VALUES ('expired', 'late', '[]', '', 'h')"
            )
            conn.execute(
                "INSERT INTO bus.cursors (consumer, sequence, epoch)"
                " VALUES ('c', 2, gen_random_uuid())"
            )
            conn.execute(
                "INSERT INTO timestore.ingest_batches"
                " (id, dataset, file, format, rows, bytes, schema_version, state)"
                " SELECT n, 'events', 'f', 'json', 1, 1, 1,"
                " CASE n WHEN 1 THEN 'committed' ELSE 'staged' END FROM generate_series(1, 3) n"
            )
        async with connect(f"{api.ws}/ws", additional_headers=headers):
            expected = {
                'tristore_events_stored_total{source="odd \\"source\\""}': 7,
                "tristore_log_last_sequence": 7,
                "tristore_tail_sequence": 7,
                "tristore_tail_lag_events": 0,
                "tristore_live_readers": 1,
                'tristore_dead_letters{reason="expired",source="late"}': 1,
                'tristore_consumer_lag_events{consumer="c"}': 5,
                'tristore_outbox_events{state="pending"}': 0,
                'tristore_outbox_events{state="enqueued"}': 0,
                "tristore_queue_jobs": 0,
                'tristore_ingest_waiting_batches{dataset="events"}': 2,
                "tristore_outbox_oldest_seconds": 0,
                'tristore_up{part="postgres"}': 1,
                'tristore_up{part="redis"}': 1,
                'tristore_up{part="relay"}': 1,
                'tristore_up{part="ingress"}': 1,
                'tristore_http_requests_total{method="POST",route="/v1/events",status="202"}': 1,
                'tristore_http_request_seconds_count{method="POST",route="/v1/events"}': 1,
            }

            async def shown() -> bool:
                found = await page(client)
                return expected.items() <= found.items()

            try:
                await until(shown)
            except AssertionError:
                found = await page(client)
                assert {name: found.get(name) for name in expected} == expected


async def test_a_path_nobody_serves_makes_no_series(api: Api) -> None:
    headers = api.bearer("events:read")
    async with AsyncClient(base_url=api.url, headers=headers) as client:
        for number in range(20):
            await client.get(f"/nothing/{number}")
        found = await page(client)
        assert not [name for name in found if "nothing" in name]
        assert found['tristore_http_requests_total{method="GET",route="(none)",status="404"}'] >= 20


def test_the_page_needs_a_scope(api: Api) -> None:
    assert httpx.get(f"{api.url}/metrics").status_code == 401
    wrong = api.bearer("filestore:read")
    assert httpx.get(f"{api.url}/metrics", headers=wrong).status_code == 403


def test_every_alert_speaks_of_a_metric_there_is(api: Api) -> None:
    text = httpx.get(f"{api.url}/metrics", headers=api.bearer("events:read")).text
    known = {line.split()[2]: line.split()[3] for line in text.splitlines() if "# TYPE" in line}
    for name, kind in list(known.items()):
        if kind == "histogram":
            known |= {f"{name}_{part}": kind for part in ("bucket", "sum", "count")}
    expressions = re.findall(r"expr: (?:>-\n)?((?:.+\n)(?: {10}.+\n)*)", ALERTS.read_text())
    named = {name for text in expressions for name in re.findall(r"\btristore_\w+", text)}
    assert len(expressions) == ALERTS.read_text().count("- alert:") >= 8
    assert len(named) >= 8
    assert named <= known.keys()
    for rule in ALERTS.read_text().split("- alert:")[1:]:
        assert "summary:" in rule and "action:" in rule
