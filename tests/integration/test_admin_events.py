"""Finding events over HTTP: shapes, pages, refusals, rights."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import psycopg
import pytest

from tests.support.history import made, store
from tests.support.operator import client, running_api, token
from tristore.config import Settings

ITEM = {
    "id",
    "type",
    "source",
    "occurredAt",
    "receivedAt",
    "ingressSequence",
    "payload",
    "correlationId",
    "ttl",
    "metadata",
    "schemaVersion",
}


@pytest.fixture
def api(settings: Settings) -> Iterator[str]:
    with running_api(settings) as url:
        yield url


@pytest.fixture
def reader(api: str, settings: Settings) -> Iterator[httpx.Client]:
    with client(api, settings, "events:read") as found:
        yield found


async def history(settings: Settings) -> None:
    events = [
        made(n, type=f"shop.order.{'paid' if n % 2 else 'sent'}", correlationId=f"run-{n % 3}")
        for n in range(1, 31)
    ]
    events.append(made(31, id="with/slash and ?", source="elsewhere", ttl=3_600_000))
    await store(str(settings.database_url), events)


async def test_pages_follow_one_another_and_have_the_contract_s_shape(
    reader: httpx.Client, settings: Settings
) -> None:
    await history(settings)
    params = {"type": "shop.*", "source": "history", "limit": 7}
    seen: list[int] = []
    cursor = None
    while True:
        page = reader.get(
            "/admin/events", params={**params, "cursor": cursor} if cursor else params
        )
        body = page.json()
        assert page.status_code == 200
        assert body.keys() == {"items", "nextCursor"}
        assert all(item.keys() == ITEM for item in body["items"])
        seen += [item["ingressSequence"] for item in body["items"]]
        cursor = body["nextCursor"]
        if cursor is None:
            break
    assert seen == list(range(30, 0, -1))
    oldest = reader.get("/admin/events", params={"order": "asc", "limit": 2}).json()
    assert [item["id"] for item in oldest["items"]] == ["h-1", "h-2"]
    paid = reader.get("/admin/events", params={"jsonPath": "$.n == 5"}).json()
    assert [item["payload"] for item in paid["items"]] == [{"n": 5}]
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert reader.get("/admin/events", params={"from": later}).json()["items"] == []
    assert len(reader.get("/admin/events", params={"to": later}).json()["items"]) == 31


async def test_one_event_and_everything_it_belongs_to(
    reader: httpx.Client, settings: Settings
) -> None:
    await history(settings)
    assert reader.get("/admin/events/h-4").json()["payload"] == {"n": 4}
    odd = reader.get("/admin/events/with%2Fslash%20and%20%3F")
    assert odd.json()["ttl"] == 3_600_000
    first = reader.get("/admin/events/h-4/trace", params={"limit": 4}).json()
    rest = reader.get(
        "/admin/events/h-4/trace", params={"limit": 100, "cursor": first["nextCursor"]}
    ).json()
    traced = [item["id"] for item in first["items"] + rest["items"]]
    assert traced == [f"h-{n}" for n in range(1, 31) if n % 3 == 1]
    alone = reader.get("/admin/events/with%2Fslash%20and%20%3F/trace").json()
    assert [item["id"] for item in alone["items"]] == ["with/slash and ?"]
    for absent in ("none", "none/trace", "%00", "a%00/trace"):
        missing = reader.get(f"/admin/events/{absent}")
        assert missing.status_code == 404, absent
        assert missing.headers["content-type"] == "application/problem+json"


MEANINGLESS: list[dict[str, str]] = [
    {"tpye": "a.b.c"},
    {"type": "a.*.c"},
    {"type": "*.c"},
    {"type": "a\x00"},
    {"source": ""},
    {"from": "yesterday"},
    {"from": "1700000000"},
    {"from": "2026-11-15T10:00:00"},
    {"from": "0001-01-01T00:00:00Z"},
    {"to": "9999-12-31T23:59:59-14:00"},
    {"limit": "0"},
    {"limit": "1001"},
    {"limit": "x"},
    {"order": "up"},
    {"jsonPath": "$.**.secret"},
    {"jsonPath": "$.**.**.**.**"},
    {"jsonPath": "$.a == "},
    {"cursor": "nonsense"},
    {"cursor": "LTE"},
    {"fromSequence": "-1"},
    {"toSequence": str(2**63)},
    {"correlationId": "x" * 201},
]


def test_a_question_that_means_nothing_is_refused(reader: httpx.Client) -> None:
    for params in MEANINGLESS:
        refused = reader.get("/admin/events", params=params)
        assert refused.status_code == 422, (params, refused.text)
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["detail"]


async def test_a_cursor_is_held_to_its_filters_and_its_log(
    reader: httpx.Client, settings: Settings
) -> None:
    await history(settings)
    cursor = reader.get("/admin/events", params={"limit": 3}).json()["nextCursor"]
    other = reader.get("/admin/events", params={"cursor": cursor, "source": "history"})
    assert other.status_code == 422
    assert "other filters" in other.json()["detail"]
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute("UPDATE bus.ingress_head SET epoch = gen_random_uuid()")
    stale = reader.get("/admin/events", params={"cursor": cursor})
    assert stale.status_code == 409
    assert "without a cursor" in stale.json()["detail"]


def test_reading_takes_read_or_admin_and_changing_takes_admin(api: str, settings: Settings) -> None:
    reads = ["/admin/events", "/admin/dead-letters", "/admin/completeness", "/admin/event-health"]
    changes = [
        ("POST", "/admin/dead-letters/1/replay"),
        ("POST", "/admin/dead-letters/replay"),
        ("DELETE", "/admin/dead-letters/1"),
    ]
    for scope in ("events:read", "events:admin"):
        with client(api, settings, scope) as allowed:
            assert [allowed.get(path).status_code for path in reads] == [200] * 4
    for scope in ("events:read", "events:publish", "filestore:admin"):
        with client(api, settings, scope) as refused:
            for method, path in changes:
                assert refused.request(method, path).status_code == 403, (scope, path)
            if scope != "events:read":
                assert [refused.get(path).status_code for path in reads] == [403] * 4


def test_a_token_limited_to_a_mount_sees_no_events(api: str, settings: Settings) -> None:
    limited = token(settings, ["events:read", "events:admin"], mounts=["m"])
    headers = {"Authorization": f"Bearer {limited}"}
    with httpx.Client(base_url=api, headers=headers, trust_env=False) as refused:
        for path in ("/admin/events", "/admin/events/x", "/admin/dead-letters/1"):
            answer = refused.get(path)
            assert answer.status_code == 403
            assert "limited" in answer.json()["detail"]


async def test_event_health_tells_what_waits_and_who_publishes(
    reader: httpx.Client, settings: Settings
) -> None:
    await history(settings)
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute(
            "INSERT INTO bus.cursors (consumer, sequence, epoch) "
            "SELECT 'slow', 11, epoch FROM bus.ingress_head"
        )
        conn.execute(
            "INSERT INTO bus.outbox (event_id, source, body_hash, envelope, created_at) "
            "VALUES ('w', 's', '', '{}', now() - interval '1 minute')"
        )
        conn.execute(
            "INSERT INTO bus.outbox (event_id, source, body_hash, envelope, attempt) "
            "VALUES ('x', 'busy', '', '{}', 3), ('y', 'busy', '', '{}', 4)"
        )
    health = reader.get("/admin/event-health").json()
    assert health["lastSequence"] == 31
    assert health["queue"] == {"depth": 0, "error": None}
    assert (health["outbox"]["pending"], health["outbox"]["enqueued"]) == (3, 0)
    busy, still = health["outbox"]["sources"]
    assert 60 <= still.pop("oldestPendingSeconds") < 120
    assert 0 <= busy.pop("oldestPendingSeconds") < 60
    assert busy == {"source": "busy", "pending": 2, "enqueued": 0, "failedSends": 7}
    assert still == {"source": "s", "pending": 1, "enqueued": 0, "failedSends": 0}
    assert 60 <= health["outbox"]["oldestPendingSeconds"] < 120
    (consumer,) = health["consumers"]
    assert (consumer["consumer"], consumer["lag"]) == ("slow", 20)
    rates = health["publishRates"]["lastMinute"]
    assert {row["source"] for row in rates["sources"]} == {"history", "elsewhere"}
    assert rates["perSecond"] == pytest.approx(31 / 60, abs=0.01)
    assert health["parts"]["relay"] == 0
