"""Publishers that die, lose the answer to their COMMIT, or say the same thing sixteen times."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from psycopg.conninfo import conninfo_to_dict

from faults.publisher import read_book
from faults.stage import BUS, Outcome, Stage
from tests.support.api import Api
from tests.support.publishing import Ledger, digest
from tests.support.tcp_proxy import TcpProxy, When
from tests.support.waiting import wait_until
from tristore.events.envelope import Event

PUBLISHERS = 16
PER_REQUEST = 5
_IN_OUTBOX = "SELECT event_id FROM bus.outbox WHERE event_id = ANY(%s)"


def killed_around_commit(stage: Stage, point: str) -> Outcome:
    """F1. What was committed arrives, what was not never existed; `point` is where it dies."""
    ledger: Ledger = {}
    with stage.part("work", BUS):
        for kill in range(stage.faults):
            confirmed, unknown = _publish_until_killed(stage, point, kill)
            there = {row["event_id"] for row in stage.rows(_IN_OUTBOX, list(unknown))}
            assert there == (set() if point == "before_commit" else unknown.keys())
            ledger |= confirmed | unknown if there else confirmed
        ledger |= stage.commit(20)
        stage.settle()
    stage.check(ledger)
    return Outcome(len(ledger), stage.faults)


def _publish_until_killed(stage: Stage, point: str, kill: int) -> tuple[Ledger, Ledger]:
    book = stage.folder / f"book-{point}-{kill}"
    nth = stage.chance.randint(2, 10)
    spec = f"publisher.{point}:exit9:{nth}"
    with stage.program("faults.publisher", str(book), "1000000", FAILPOINTS=spec) as publisher:
        wait_until(publisher.was_killed)
    confirmed, unknown = read_book(book)
    assert len(confirmed) == (nth - 1) * len(unknown) > 0
    return confirmed, unknown


def killed_by_chance(stage: Stage) -> Outcome:
    """F1. Killed at any moment: a transaction without an answer is there whole or not at all."""
    ledger: Ledger = {}
    with stage.part("work", BUS):
        for kill in range(stage.faults):
            confirmed, unknown = _publish_and_kill(stage, kill)
            there = {row["event_id"] for row in stage.rows(_IN_OUTBOX, list(unknown))}
            assert there in (set(), set(unknown))
            ledger |= confirmed | unknown if there else confirmed
        stage.settle()
    stage.check(ledger)
    return Outcome(len(ledger), stage.faults)


def _publish_and_kill(stage: Stage, kill: int) -> tuple[Ledger, Ledger]:
    book = stage.folder / f"book-by-chance-{kill}"
    enough = stage.chance.randint(20, 400)
    with stage.program("faults.publisher", str(book), "1000000") as publisher:
        wait_until(lambda: len(read_book(book)[0]) > enough)
        publisher.kill()
    return read_book(book)


def answer_to_commit_lost(stage: Stage) -> Outcome:
    """F2. The API cannot know whether its COMMIT happened: it does not say 202, and the same
    events sent again are stored once."""
    server = conninfo_to_dict(stage.url)
    ledger: Ledger = {}
    with TcpProxy(str(server["host"]), int(str(server["port"]))) as proxy, stage.part("work", BUS):
        address = stage.url.replace(f":{server['port']}/", f":{proxy.port}/")
        with stage.with_settings(database_url=address).serving() as api, _client(api) as client:
            for number in range(max(stage.events // PER_REQUEST, 1)):
                made = [_event(number) for _ in range(PER_REQUEST)]
                if cutting := number % 4 < 2:
                    when: When = "before" if number % 4 else "after"
                    proxy.cut(b"COMMIT", when, following=made[0].id.encode())
                _publish_surely(client, made, must_fail=cutting)
                ledger |= {event.id: digest(event.payload) for event in made}
        stage.settle()
    assert proxy.cuts >= stage.events // PER_REQUEST // 2
    stage.check(ledger)
    return Outcome(len(ledger), proxy.cuts)


def _publish_surely(client: httpx.Client, made: list[Event], *, must_fail: bool) -> None:
    body = [event.to_json() for event in made]
    statuses = [client.post("/v1/events", json=body).status_code]
    while statuses[-1] == 503:
        statuses.append(client.post("/v1/events", json=body).status_code)
    assert statuses[-1] == 202, statuses
    assert len(statuses) > 1 or not must_fail


def same_event_at_once(stage: Stage) -> Outcome:
    """F26. Sixteen publishers send one event at the same moment, again and again: one is
    answered `accepted`, the others `duplicate`, and the log has it once."""
    made = [_event(number) for number in range(max(stage.events // PUBLISHERS, 2))]
    with stage.part("work", BUS), stage.serving() as api:
        together = threading.Barrier(PUBLISHERS)
        with ThreadPoolExecutor(PUBLISHERS) as threads:
            sent = [threads.submit(_publish_each, api, made, together) for _ in range(PUBLISHERS)]
        answers = sorted(itertools.chain.from_iterable(call.result() for call in sent))
        stage.settle()
    assert answers == sorted(
        (event.id, "duplicate" if copy else "accepted")
        for event in made
        for copy in range(PUBLISHERS)
    )
    stage.check({event.id: digest(event.payload) for event in made})
    return Outcome(len(made), len(made))


def _publish_each(
    api: Api, made: list[Event], together: threading.Barrier
) -> list[tuple[str, str]]:
    answers = []
    with _client(api) as client:
        for event in made:
            together.wait(60)
            answer = client.post("/v1/events", json=event.to_json())
            answers.append((event.id, _status(answer)))
    return answers


def _status(answer: httpx.Response) -> str:
    if answer.status_code != 202:
        return f"{answer.status_code}: {answer.text}"
    (result,) = answer.json()["results"]
    return str(result["status"])


def _client(api: Api) -> httpx.Client:
    headers: dict[str, Any] = api.bearer("events:publish")
    return httpx.Client(
        base_url=api.url, headers=headers, timeout=60, trust_env=False, verify=False
    )


def _event(number: int) -> Event:
    return Event.make("test.thing.made", {"n": number}, source="faults")
