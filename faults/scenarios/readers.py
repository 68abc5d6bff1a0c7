"""Readers that come in the middle, hear no wake-up, or sleep while the log is cut."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from faults.stage import BUS, SMALL_JOBS, Outcome, Stage
from tests.support.api import Api
from tests.support.database import log_count
from tests.support.history import made, store
from tests.support.publishing import Ledger, commit_events
from tests.support.waiting import wait_until
from tristore.config import EventsSettings
from tristore.db.pool import make_pool
from tristore.events.housekeeping import Housekeeping

_MANY_SOCKETS = {"TRISTORE_HTTP__SOCKETS_PER_TOKEN": "100000"}
_DEAF = {"FAILPOINTS": "wakeups.notice:skip:*"}
# More than the buffers between a server and a reader that has stopped can hold.
_LARGE = "x" * 50_000
_CUT, _KEPT = 250, 50
Headers = dict[str, str]


def come_in_a_burst(stage: Stage) -> Outcome:
    """F22. Readers connect at random moments of a burst, some from an older position: each gets
    exactly what comes after its start, without a gap and without a repeat."""
    with stage.part("work", BUS, **SMALL_JOBS), stage.serving(**_MANY_SOCKETS) as api:
        ledger = stage.commit()
        # Else, where the bus starts slowly, all might come before the first event.
        wait_until(lambda: log_count(stage.url) > 0)
        starts = asyncio.run(_burst(stage, api, ledger))
        stage.settle()
    stage.check(ledger)
    assert sum(0 < start < len(ledger) for start in starts) > len(starts) // 10
    return Outcome(len(ledger), len(starts))


async def _burst(stage: Stage, api: Api, ledger: Ledger) -> list[int]:
    headers = api.bearer("events:read")
    publishing = asyncio.create_task(commit_events(stage.url, stage.events, per_transaction=5))
    reading: list[asyncio.Task[tuple[int, list[int]]]] = []
    while not publishing.done() or len(reading) < 20:
        address = f"{api.ws}/ws{await _start(stage)}"
        reading.append(asyncio.create_task(_read_to(address, headers, 2 * stage.events)))
        await asyncio.sleep(stage.chance.random() * 0.05)
    ledger |= await publishing
    starts = []
    for start, seen in await asyncio.gather(*reading):
        assert seen == list(range(start + 1, len(ledger) + 1))
        starts.append(start)
    return starts


async def _start(stage: Stage) -> str:
    """From now on, or from anywhere in what is stored."""
    if stage.chance.random() < 0.5:
        return ""
    stored = await asyncio.to_thread(log_count, stage.url)
    return f"?since={stage.chance.randint(0, stored)}"


async def _read_to(address: str, headers: Headers, last: int) -> tuple[int, list[int]]:
    """Where the reader was told that it starts, and the numbers it was sent."""
    async with connect(address, additional_headers=headers, open_timeout=60) as socket:
        start = (await _frame(socket))["sequence"]
        return start, await _numbers(socket, start, last)


async def _numbers(socket: ClientConnection, start: int, last: int) -> list[int]:
    seen: list[int] = []
    async with asyncio.timeout(60):
        while start < last and (not seen or seen[-1] < last):
            frame = await _frame(socket)
            seen += [frame["sequence"]] if frame["kind"] == "event" else []
    return seen


async def _frame(socket: ClientConnection) -> dict[str, Any]:
    frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


def hear_nothing(stage: Stage) -> Outcome:
    """F24. Every wake-up is lost, for the relay and for the live readers: all comes by poll."""
    with stage.part("work", BUS, **_DEAF, **SMALL_JOBS), stage.serving(**_DEAF) as api:
        ledger = asyncio.run(_publish_and_read(stage, api))
        stage.settle()
    stage.check(ledger)
    return Outcome(len(ledger), stage.faults)


async def _publish_and_read(stage: Stage, api: Api) -> Ledger:
    ledger: Ledger = {}
    async with connect(f"{api.ws}/ws", additional_headers=api.bearer("events:read")) as socket:
        start = (await _frame(socket))["sequence"]
        for _ in range(stage.faults):
            ledger |= await commit_events(stage.url, stage.events // stage.faults)
            seen = await _numbers(socket, start, len(ledger))
            assert seen == list(range(start + 1, len(ledger) + 1))
            start = seen[-1]
    return ledger


def sleep_through_retention(stage: Stage) -> Outcome:
    """F28. The log is cut under a reader that has stopped reading: it gets what was on its way,
    without a gap, and is then told where the log begins; a late one is told at once."""
    events = [made(number, payload={"text": _LARGE}) for number in range(1, _KEPT + _CUT + 1)]
    asyncio.run(store(stage.url, events))
    with stage.serving() as api:
        asyncio.run(_sleep_and_wake(stage, api))
    return Outcome(len(events), 1)


async def _sleep_and_wake(stage: Stage, api: Api) -> None:
    headers = api.bearer("events:read")
    async with connect(f"{api.ws}/ws?since=0", additional_headers=headers) as socket:
        assert (await _frame(socket))["sequence"] == 0
        first = (await _frame(socket))["sequence"]
        socket.transport.pause_reading()
        await _cut_log(stage)
        socket.transport.resume_reading()
        rest, goodbye = await _read_to_the_end(socket)
    seen = [first, *rest]
    assert len(seen) < _CUT
    assert seen == list(range(1, len(seen) + 1))
    assert goodbye == (4410, f"earliest={_CUT + 1}")
    async with connect(f"{api.ws}/ws?since={seen[-1]}", additional_headers=headers) as late:
        assert await _read_to_the_end(late) == ([], goodbye)
    await _ask_over_http(api, headers, seen[-1], _CUT + 1)
    kept = await _read_to(f"{api.ws}/ws?since={_CUT}", headers, _CUT + _KEPT)
    assert kept == (_CUT, list(range(_CUT + 1, _CUT + _KEPT + 1)))


async def _ask_over_http(api: Api, headers: Headers, since: int, earliest: int) -> None:
    async with httpx.AsyncClient(base_url=api.url, headers=headers, trust_env=False) as client:
        answer = await client.get("/v1/events/stream", params={"since": since})
    assert (answer.status_code, answer.json()["earliest"]) == (410, earliest)


async def _cut_log(stage: Stage) -> None:
    """As the platform does it, for events of which it believes that they are old."""
    age = "UPDATE bus.workflow_events SET received_at = now() - interval '9 days'"
    with psycopg.connect(stage.url) as conn:
        conn.execute(f"{age} WHERE ingress_sequence <= %s", [_CUT])
    async with make_pool(stage.url, name="house", max_size=1) as pool:
        keeper = Housekeeping(pool, EventsSettings(log_keep_days=7))
        await keeper.keep_house(datetime.now(UTC).date())
    assert log_count(stage.url) == _KEPT


async def _read_to_the_end(socket: ClientConnection) -> tuple[list[int], tuple[int, str]]:
    """The numbers it was sent, and how it was closed; 0 if it was sent the last one first."""
    seen: list[int] = []
    try:
        async with asyncio.timeout(60):
            while not seen or seen[-1] < _CUT + _KEPT:
                frame = await _frame(socket)
                seen += [frame["sequence"]] if frame["kind"] == "event" else []
    except ConnectionClosed as end:
        assert end.rcvd is not None
        return seen, (end.rcvd.code, end.rcvd.reason)
    return seen, (0, "")
