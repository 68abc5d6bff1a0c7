"""`tristore events` and `tristore dlq` against a running platform."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.command import answer, tristore
from tests.support.database import log_count, value
from tests.support.operator import running_api, token
from tests.support.parts import environment
from tests.support.waiting import wait_until
from tristore.config import Settings

SCOPES = ["events:read", "events:publish", "events:admin"]


@pytest.fixture
def where(settings: Settings) -> Iterator[dict[str, str]]:
    """The environment in which client commands find the platform."""
    with running_api(settings, "relay", "ingress") as url:
        yield {"TRISTORE_URL": url, "TRISTORE_TOKEN": token(settings, SCOPES)}


def test_events_are_published_found_and_printed_again(
    settings: Settings, where: dict[str, str]
) -> None:
    sent = answer(
        settings, "events", "publish", "shop.order.paid", '{"n": 1}', "--id", "one", **where
    )
    assert sent["results"] == [{"id": "one", "status": "accepted"}]
    payloads = "".join(f'{{"n": {n}}}\n' for n in range(2, 1202))
    many = tristore(
        settings,
        *["events", "publish", "shop.order.sent", "-", "--source", "shop"],
        stdin=payloads,
        **where,
    )
    assert (many.returncode, many.stdout.strip()) == (0, "1200 accepted")
    wait_until(lambda: log_count(str(settings.database_url)) == 1201)
    page = answer(settings, "events", "list", "--type", "shop.order.paid", **where)
    assert [item["id"] for item in page["items"]] == ["one"]
    table = tristore(settings, "events", "list", "--source", "cli", **where)
    assert "shop.order.paid" in table.stdout
    printed = tristore(settings, "events", "replay", "--from", "2", "--to", "1100", **where)
    lines = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [line["ingressSequence"] for line in lines] == list(range(2, 1101))
    assert len({line["payload"]["n"] for line in lines}) == 1099


def test_lines_that_are_refused_are_told_and_the_others_go(
    settings: Settings, where: dict[str, str]
) -> None:
    good = [{"type": "shop.order.paid", "payload": {"n": n}, "id": f"g-{n}"} for n in range(5)]
    lines = [json.dumps(event) for event in good]
    lines[2:2] = ["not json", json.dumps({"type": "Wrong", "payload": {}}), ""]
    done = tristore(settings, "events", "publish", stdin="\n".join(lines), **where)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "2 refused: line 3" in done.stderr
    assert "line 4" in done.stderr
    wait_until(lambda: log_count(str(settings.database_url)) == 5)


def test_watching_goes_on_after_the_platform_was_away(settings: Settings) -> None:
    secret = token(settings, SCOPES)
    with running_api(settings, "relay", "ingress") as url:
        where = {"TRISTORE_URL": url, "TRISTORE_TOKEN": secret}
        answer(settings, "events", "publish", "shop.order.paid", '{"n": 1}', **where)
        words = "events tail --type shop.* --since 0 --count 2 --json".split()
        watch = subprocess.Popen(
            [sys.executable, "-m", "tristore", *words],
            env=environment(settings, **where),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
    port = int(url.rpartition(":")[2])
    with running_api(settings, "relay", "ingress", port=port):
        answer(settings, "events", "publish", "other.thing.made", "{}", **where)
        answer(settings, "events", "publish", "shop.order.sent", '{"n": 2}', **where)
        rest, _ = watch.communicate(timeout=30)
    (second,) = map(json.loads, rest.splitlines())
    assert (first["payload"], second["payload"]) == ({"n": 1}, {"n": 2})
    assert watch.returncode == 0


def test_dead_letters_are_looked_at_sent_again_and_discarded(
    settings: Settings, where: dict[str, str]
) -> None:
    expired = {"type": "shop.order.paid", "payload": {}, "ttl": 1}
    lines = [
        json.dumps({**expired, "id": f"x-{n}", "occurredAt": "2026-01-01T00:00:00Z"})
        for n in range(4)
    ]
    tristore(settings, "events", "publish", stdin="\n".join(lines), **where)
    count = "SELECT count(*) FROM bus.dead_letters"
    wait_until(lambda: value(str(settings.database_url), count) == 4)
    listed = answer(settings, "dlq", "list", "--reason", "expired", **where)["items"]
    ids = [str(item["id"]) for item in listed]
    assert len(ids) == 4
    assert "older than its ttl" in tristore(settings, "dlq", "show", ids[0], **where).stdout
    assert answer(settings, "dlq", "discard", ids[0], **where)["state"] == "discarded"
    sent = answer(settings, "dlq", "replay", ids[1], "--payload", '{"fixed": true}', **where)
    assert sent["status"] == "accepted"
    told = answer(settings, "dlq", "replay", "--reason", "expired", "--dry-run", **where)
    assert told["count"] == 2
    assert len(answer(settings, "dlq", "replay", "--all", **where)["replayed"]) == 2
    wait_until(lambda: log_count(str(settings.database_url)) == 3)
    again = tristore(settings, "dlq", "replay", ids[1], **where)
    assert (again.returncode, "was replayed" in again.stderr) == (1, True)


def test_refusals_are_one_line_and_wrong_usage_is_exit_2(
    settings: Settings, where: dict[str, str]
) -> None:
    refused = [
        (["events", "list", "--json-path", "$.**.x"], "jsonPath"),
        (["events", "publish", "Wrong", "{}"], "/type"),
        (["dlq", "show", "999"], "no dead letter 999"),
        (["events", "list", "--token", "tri_wrong"], "unknown, revoked or expired"),
        (["events", "list", "--url", "http://127.0.0.1:1"], "no answer from"),
        (["events", "tail", "--since", "99999"], "has not come so far"),
        (["events", "list", "--data-dir", "/nowhere"], "no platform runs on /nowhere"),
    ]
    for argv, words in refused:
        done = tristore(settings, *argv, **where)
        assert (done.returncode, done.stdout) == (1, ""), (argv, done.stdout)
        assert words in done.stderr
        assert done.stderr.startswith("tristore: ")
        assert done.stderr.count("\n") == 1, done.stderr
    for wrong in (
        ["events", "publish", "a.b.c", "{"],
        ["dlq", "replay"],
        ["dlq", "replay", "1", "--all"],
        ["events", "list", "--limit", "0"],
    ):
        assert tristore(settings, *wrong, **where).returncode == 2, wrong
