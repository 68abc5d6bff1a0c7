"""Dead letters as an operator meets them: list, show, send again, discard."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.database import rows, value
from tests.support.operator import client, running_api
from tests.support.waiting import wait_until
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.errors import InvalidEvent, Violation
from tristore.events import deadletters
from tristore.events.deadletters import DeadLetter
from tristore.events.envelope import Event

DELETED: dict[str, Any] = {
    "id": "gone-1",
    "type": "metastore.record.deleted",
    "source": "metastore.api",
    "payload": {"namespace": "n", "key": "k", "version": 1},
}
CORRECT = {
    "namespace": "n",
    "key": "k",
    "version": 1,
    "tags": [],
    "actor": "test",
    "changed": [],
}


@pytest.fixture
def operator(settings: Settings) -> Iterator[httpx.Client]:
    with (
        running_api(settings, "relay", "ingress") as url,
        client(url, settings, "events:admin") as found,
    ):
        yield found


def refuse(settings: Settings, event: dict[str, Any], **changes: Any) -> int:
    """Sends an event through outbox and ingress, which refuses it; its letter's id."""
    envelope = Event.parse({"occurredAt": "2026-01-01T00:00:00Z", **event, **changes})
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute(
            "INSERT INTO bus.outbox (event_id, source, body_hash, envelope) VALUES (%s,%s,%s,%s)",
            [envelope.id, envelope.source, envelope.body_hash(), envelope.dumps().decode()],
        )
    return int(wait_until(lambda: open_letter(settings, envelope.id)))


def open_letter(settings: Settings, event_id: str) -> Any:
    query = "SELECT max(id) FROM bus.dead_letters WHERE event_id = %s AND state = 'open'"
    return value(str(settings.database_url), query, event_id)


def stored(settings: Settings, event_id: str) -> Any:
    query = "SELECT payload FROM bus.workflow_events WHERE id = %s"
    return value(str(settings.database_url), query, event_id)


def ledger(operator: httpx.Client) -> Any:
    return operator.get("/admin/completeness").json()


def test_a_refused_event_is_shown_corrected_and_stored(
    operator: httpx.Client, settings: Settings
) -> None:
    letter_id = refuse(settings, DELETED)
    listed = operator.get("/admin/dead-letters", params={"reason": "schema_invalid"}).json()
    (item,) = listed["items"]
    assert (item["id"], item["eventId"], item["type"]) == (letter_id, "gone-1", DELETED["type"])
    assert any("tags" in error["message"] for error in item["errors"])
    shown = operator.get(f"/admin/dead-letters/{letter_id}").json()
    assert '"gone-1"' in shown["raw"]
    assert (shown["rawEncoding"], shown["rawTruncated"], shown["attempts"]) == ("text", False, 1)

    sent = operator.post(f"/admin/dead-letters/{letter_id}/replay", json={"payload": CORRECT})
    assert sent.status_code == 202
    assert sent.json() == {"id": letter_id, "eventId": "gone-1", "status": "accepted"}
    assert wait_until(lambda: stored(settings, "gone-1")) == CORRECT
    settled = operator.get(f"/admin/dead-letters/{letter_id}").json()
    assert (settled["state"], settled["replayedAs"]) == ("replayed", "gone-1")
    assert settled["settledBy"].startswith("test (")
    assert operator.get("/admin/dead-letters").json()["items"] == []
    twice = operator.post(f"/admin/dead-letters/{letter_id}/replay")
    assert (twice.status_code, "gone-1" in twice.json()["detail"]) == (409, True)
    assert ledger(operator)["verdict"] == "closed, 0 missing"


def test_a_replay_that_is_refused_again_is_a_new_letter(
    operator: httpx.Client, settings: Settings
) -> None:
    first = refuse(settings, DELETED)
    assert operator.post(f"/admin/dead-letters/{first}/replay").status_code == 202
    second = wait_until(lambda: open_letter(settings, "gone-1"))
    assert second != first
    assert operator.get(f"/admin/dead-letters/{first}").json()["state"] == "replayed"
    discarded = operator.delete(f"/admin/dead-letters/{second}")
    assert (discarded.status_code, discarded.json()["state"]) == (200, "discarded")
    assert operator.delete(f"/admin/dead-letters/{second}").status_code == 200
    assert operator.post(f"/admin/dead-letters/{second}/replay").status_code == 409
    found = ledger(operator)
    assert (found["totals"]["deadLettered"], found["verdict"]) == (1, "closed, 0 missing")


def test_a_whole_event_may_take_the_place_of_bytes_that_are_none(
    operator: httpx.Client, settings: Settings
) -> None:
    refusal = InvalidEvent("envelope_invalid", [Violation("", "not JSON")])
    letter_id = keep(settings, DeadLetter.of(refusal, b"\xff{", None))
    shown = operator.get(f"/admin/dead-letters/{letter_id}").json()
    assert (shown["raw"], shown["rawEncoding"]) == ("/3s=", "base64")
    path = f"/admin/dead-letters/{letter_id}/replay"
    hopeless = operator.post(path)
    assert hopeless.status_code == 422
    assert '{"event"' in hopeless.json()["detail"]
    bad: list[Any] = [
        {"payload": {}, "event": {}},
        {"pyload": {}},
        {"event": {"type": "x"}},
        {"payload": [1]},
        [],
    ]
    for body in bad:
        assert operator.post(path, json=body).status_code == 422, body
    for content in (b'{"payload":{"a":NaN}}', b'{"payload":{"a":1,"a":2}}', b"[" * 5000, b"\xff"):
        assert operator.post(path, content=content).status_code == 422, content
    assert operator.post(path, content=b" " * 2_000_000).status_code == 413
    event = {"type": "shop.order.paid", "source": "shop", "payload": {"total": 2**53 + 1}}
    assert operator.post(path, json={"event": event}).status_code == 202
    (row,) = wait_until(
        lambda: rows(str(settings.database_url), "SELECT payload FROM bus.workflow_events")
    )
    assert row["payload"] == {"total": 2**53 + 1}


def keep(settings: Settings, *letters: DeadLetter) -> int:
    async def run() -> None:
        async with make_pool(str(settings.database_url), name="test") as pool:
            async with pool.connection() as conn:
                await deadletters.add(conn, letters)

    asyncio.run(run())
    return int(value(str(settings.database_url), "SELECT max(id) FROM bus.dead_letters"))


def test_an_id_that_is_taken_needs_a_new_one_and_an_expired_event_is_stored_on_request(
    operator: httpx.Client, settings: Settings
) -> None:
    paid = {"id": "p-1", "type": "shop.order.paid", "source": "shop", "payload": {"n": 1}}
    with client(str(operator.base_url), settings, "events:publish") as publisher:
        assert publisher.post("/v1/events", json=paid).status_code == 202
    wait_until(lambda: stored(settings, "p-1"))
    conflict = InvalidEvent("id_conflict", [Violation("/id", "taken")])
    other = {**paid, "payload": {"n": 2}}
    letter_id = keep(settings, DeadLetter.of(conflict, _raw(other), other))
    path = f"/admin/dead-letters/{letter_id}/replay"
    refused = operator.post(path)
    assert refused.status_code == 409
    assert "id of its own" in refused.json()["detail"]
    assert operator.post(path, json={"event": {**other, "id": "p-2"}}).status_code == 202
    assert wait_until(lambda: stored(settings, "p-2")) == {"n": 2}
    assert stored(settings, "p-1") == {"n": 1}

    late = refuse(settings, {**paid, "id": "late"}, ttl=1000)
    assert operator.get(f"/admin/dead-letters/{late}").json()["reason"] == "expired"
    assert operator.post(f"/admin/dead-letters/{late}/replay").status_code == 202
    assert wait_until(lambda: stored(settings, "late")) == {"n": 1}


def _raw(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode()


def test_a_replay_by_filter_is_told_first_bounded_and_goes_on(
    operator: httpx.Client, settings: Settings
) -> None:
    reason = InvalidEvent("no_schema", [Violation("/type", "no schema")])
    events = [
        {"id": f"r-{n}", "type": "shop.order.paid", "source": f"shop.{n % 2}", "payload": {"n": n}}
        for n in range(12)
    ]
    keep(settings, *(DeadLetter.of(reason, _raw(event), event) for event in events))
    keep(settings, DeadLetter.of(reason, b"broken", {"source": "shop.0"}))
    path = "/admin/dead-letters/replay"
    told = operator.post(path, json={"source": "shop.*", "dryRun": True}).json()
    assert (told["count"], len(told["firstIds"])) == (13, 13)
    assert operator.post(path, json={}).status_code == 422
    assert operator.post(path, json={"sorce": "shop.0"}).status_code == 422
    wanted = {"source": "shop.0", "reason": "no_schema", "limit": 4}
    replayed: list[str] = []
    refused: list[int] = []
    cursor = None
    while True:
        answer = operator.post(path, json={**wanted, "cursor": cursor})
        assert answer.status_code == 202, answer.text
        body = answer.json()
        replayed += [each["eventId"] for each in body["replayed"]]
        refused += [each["id"] for each in body["refused"]]
        cursor = body["nextCursor"]
        if cursor is None:
            break
    assert replayed == [f"r-{n}" for n in range(0, 12, 2)]
    assert len(refused) == 1
    for event_id in replayed:
        wait_until(lambda event_id=event_id: stored(settings, event_id))
    left = operator.get("/admin/dead-letters", params={"source": "shop.*", "limit": 3}).json()
    assert len(left["items"]) == 3
    rest = operator.get(
        "/admin/dead-letters",
        params={"source": "shop.*", "limit": 100, "cursor": left["nextCursor"]},
    ).json()
    assert len(rest["items"]) == 4
    assert value(str(settings.database_url), "SELECT count(*) FROM bus.workflow_events") == 6


def test_the_list_cuts_long_bytes_and_answers_bad_questions(
    operator: httpx.Client, settings: Settings
) -> None:
    refusal = InvalidEvent("envelope_invalid", [Violation("", "too large")])
    letter_id = keep(settings, DeadLetter.of(refusal, "ä".encode() * 5000, None))
    (item,) = operator.get("/admin/dead-letters", params={"state": "all"}).json()["items"]
    assert (item["rawTruncated"], item["rawBytes"], len(item["raw"])) == (True, 10_000, 2048)
    whole = operator.get(f"/admin/dead-letters/{letter_id}").json()
    assert (whole["rawTruncated"], len(whole["raw"])) == (False, 5000)
    for path in ("/admin/dead-letters/0", "/admin/dead-letters/x", f"/admin/dead-letters/{2**63}"):
        assert operator.get(path).status_code == 422, path
    assert operator.get("/admin/dead-letters/999").status_code == 404
    assert operator.get("/admin/dead-letters", params={"state": "closed"}).status_code == 422
