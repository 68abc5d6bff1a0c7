"""The publisher while the bus is away: nothing is lost, nothing is stored twice, all is said."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.database import log_count, rows
from tests.support.parts import part
from tests.support.publishing import Ledger, check_ledger, digest
from tests.support.waiting import until
from tristore import BlockingPublisher, Publisher
from tristore.config import PublisherSettings, Settings
from tristore.errors import BufferFull, Unsent
from tristore.local.redis import EmbeddedRedis

KIND = "test.thing.made"
QUICK = PublisherSettings(tries=1, backoff_seconds=0.05, backoff_cap_seconds=0.2)
# Publishes while the bus is away, says which events it was promised, and waits to be killed.
PROGRAM = """
import sys, time
from tristore import BlockingPublisher
with BlockingPublisher("doomed", sys.argv[1], buffer=sys.argv[2]) as publisher:
    for number in range(20):
        print(publisher.publish("test.thing.made", {"n": number}), flush=True)
    print(*publisher.publish_many([{"type": "test.thing.made", "payload": {"m": n}}
                                   for n in range(30)]), sep="\\n", flush=True)
    print("end", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def away(settings: Settings, own_redis: EmbeddedRedis) -> Settings:
    """Settings of a Redis that is not running; start it with `own_redis.start()`."""
    url = own_redis.start()
    own_redis.stop()
    return settings.model_copy(update={"redis_url": url, "publisher": QUICK})


async def publish(publisher: Publisher, ledger: Ledger, first: int, count: int) -> None:
    for number in range(first, first + count):
        ledger[await publisher.publish(KIND, {"n": number})] = digest({"n": number})


async def all_stored(settings: Settings, ledger: Ledger) -> None:
    async def there() -> bool:
        return log_count(str(settings.database_url)) >= len(ledger)

    await until(there)
    check_ledger(str(settings.database_url), ledger)


async def test_redis_stopped_and_started_while_publishing_loses_and_doubles_nothing(
    away: Settings, own_redis: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    ledger: Ledger = {}
    caplog.set_level(logging.WARNING, "tristore.events.sdk.delivery")
    await asyncio.to_thread(own_redis.start)
    with part(away, "work", "ingress"):
        async with Publisher("s", settings=away) as publisher:
            await publish(publisher, ledger, 0, 100)
            await asyncio.to_thread(own_redis.stop)
            await publish(publisher, ledger, 100, 100)
            assert publisher.unsent == 100
            starting = asyncio.to_thread(own_redis.start)
            await asyncio.gather(starting, publish(publisher, ledger, 200, 100))
            await publisher.flush()
            assert publisher.counters.outages == 1
        await all_stored(away, ledger)
    said = [r for r in caplog.records if r.name == "tristore.events.sdk.delivery"]
    assert [r.message for r in said] == [
        "bus away, events wait in the buffer",
        "bus back, sending the buffer",
    ]
    assert {r.source for r in said} == {"s"}  # type: ignore[attr-defined]


async def test_a_redis_that_hangs_may_store_what_timed_out_and_the_log_keeps_it_once(
    away: Settings, own_redis: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tristore.events.queue.ADD_TIMEOUT_SECONDS", 0.5)
    ledger: Ledger = {}
    await asyncio.to_thread(own_redis.start)
    (process,) = [p for p in psutil.process_iter() if is_redis_in(p, own_redis.folder)]
    with part(away, "work", "ingress"):
        async with Publisher("s", settings=away) as publisher:
            await publish(publisher, ledger, 0, 10)
            process.send_signal(signal.SIGSTOP)
            try:
                await publish(publisher, ledger, 10, 10)
                assert publisher.counters.retries > 0
            finally:
                process.send_signal(signal.SIGCONT)
            await publisher.flush()
        await all_stored(away, ledger)


def is_redis_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.name() == "redis-server" and os.path.samefile(process.cwd(), folder)
    except (psutil.Error, OSError):
        return False


async def test_a_full_buffer_raises_and_leaving_names_how_many_are_unsent(away: Settings) -> None:
    tight = QUICK.model_copy(
        update={"buffer_events": 5, "buffer_wait_seconds": 0.2, "close_seconds": 0.2}
    )
    settings = away.model_copy(update={"publisher": tight})
    with pytest.raises(Unsent, match=r"5 events are unsent .*Redis is away") as unsent:
        async with Publisher("s", settings=settings) as publisher:
            await publish(publisher, {}, 0, 3)
            with pytest.raises(BufferFull) as full:
                await publisher.publish_many([{"type": KIND, "payload": {}}] * 8)
            assert full.value.taken == 0
            await publish(publisher, {}, 3, 2)
            with pytest.raises(BufferFull, match="same id"):
                await publisher.publish(KIND, {})
            assert publisher.unsent == 5
    assert unsent.value.count == 5


async def test_a_buffer_full_of_bytes_takes_more_when_the_bus_is_back(
    away: Settings, own_redis: EmbeddedRedis
) -> None:
    small = QUICK.model_copy(update={"buffer_bytes": 2_000})
    settings = away.model_copy(update={"publisher": small})
    ledger: Ledger = {}
    async with Publisher("s", settings=settings) as publisher:
        publishing = asyncio.create_task(publish(publisher, ledger, 0, 100))

        async def stuck() -> bool:
            return publisher.unsent > 3 and not publishing.done()

        await until(stuck)
        await asyncio.to_thread(own_redis.start)
        await publishing
    with part(settings, "work", "ingress"):
        await all_stored(settings, ledger)


async def test_an_unsent_event_is_noted_on_the_error_that_ended_the_block(away: Settings) -> None:
    hasty = QUICK.model_copy(update={"close_seconds": 0})
    settings = away.model_copy(update={"publisher": hasty})
    with pytest.raises(ZeroDivisionError) as error:
        async with Publisher("s", settings=settings) as publisher:
            await publish(publisher, {}, 0, 1)
            raise ZeroDivisionError
    assert "1 events are unsent" in error.value.__notes__[0]


def test_a_publisher_killed_in_an_outage_leaves_its_events_to_the_next(
    away: Settings, own_redis: EmbeddedRedis, tmp_path: Path
) -> None:
    file = tmp_path / "unsent"
    promised = kill_at_the_end(away, file)
    assert len(promised) == 50
    own_redis.start()
    with part(away, "work", "ingress"):
        with BlockingPublisher("next", settings=away, buffer=file) as publisher:
            promised.append(publisher.publish(KIND, {"last": True}))
        asyncio.run(all_there(away, promised))
    stored = rows(
        str(away.database_url), "SELECT id FROM bus.workflow_events ORDER BY ingress_sequence"
    )
    assert [row["id"] for row in stored] == promised
    assert file.read_bytes() == b""


def kill_at_the_end(settings: Settings, file: Path) -> list[str]:
    """The ids a publisher process was given back before it was killed."""
    argv = [sys.executable, "-c", PROGRAM, str(settings.redis_url), str(file)]
    environment = {
        **os.environ,
        "TRISTORE_EVENTS__QUEUE": settings.events.queue,
        "TRISTORE_PUBLISHER__TRIES": "1",
    }
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        promised = [line.strip() for line in iter(process.stdout.readline, "end\n")]
        process.kill()
    return promised


async def all_there(settings: Settings, ids: list[str]) -> None:
    async def there() -> bool:
        return log_count(str(settings.database_url)) >= len(ids)

    await until(there)


async def test_leaving_during_an_outage_keeps_the_events_in_the_file(
    away: Settings, own_redis: EmbeddedRedis, tmp_path: Path
) -> None:
    hasty = QUICK.model_copy(update={"close_seconds": 0.1})
    settings = away.model_copy(update={"publisher": hasty})
    ledger: Ledger = {}
    with pytest.raises(Unsent, match=r"kept in .*unsent"):
        async with Publisher("s", settings=settings, buffer=tmp_path / "unsent") as publisher:
            await publish(publisher, ledger, 0, 10)
    await asyncio.to_thread(own_redis.start)
    async with Publisher("s", settings=settings, buffer=tmp_path / "unsent") as publisher:
        await publisher.flush(10)
        assert publisher.counters.sent == 10
    with part(settings, "work", "ingress"):
        await all_stored(settings, ledger)


@pytest.mark.parametrize("method", ["replace", "append"])
async def test_a_disk_that_takes_nothing_is_told_to_the_caller(
    away: Settings,
    own_redis: EmbeddedRedis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    def full(self: object, bodies: object) -> None:
        raise OSError(28, "No space left on device")

    ledger: Ledger = {}
    async with Publisher("s", settings=away, buffer=tmp_path / "unsent") as publisher:
        if method == "append":
            await publish(publisher, ledger, 0, 1)
        with monkeypatch.context() as patched:
            patched.setattr(f"tristore.events.sdk.spool.Spool.{method}", full)
            with pytest.raises(BufferFull, match="No space left"):
                await publisher.publish(KIND, {"n": 1}, id="refused")
        await publish(publisher, ledger, 2, 5)
        await asyncio.to_thread(own_redis.start)
    with part(away, "work", "ingress"):
        await all_stored(away, ledger | {"refused": digest({"n": 1})})
