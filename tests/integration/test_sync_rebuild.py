"""A rebuild of files' records from the log: intact, emptied, damaged, and beside live work."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from tests.support import nodes
from tests.support.nodes import NAMESPACE, imported, rebuilt, records, run, settled, tell, told
from tests.support.waiting import until
from tristore.config import INLINE, MetastoreSettings, Settings
from tristore.events.payloads import (
    FilestoreNodeCreated,
    FilestoreNodeDeleted,
    FilestoreNodeMissing,
    FilestoreNodeMoved,
    FilestoreNodeReconciled,
    FilestoreNodeUpdated,
)
from tristore.metastore.changes import Amend
from tristore.metastore.patching import Patch
from tristore.wiring import open_relay, open_sync

StartPart = Callable[..., Awaitable[asyncio.Task[None]]]


@pytest.fixture
def url(synced_platform: Settings) -> str:
    return str(synced_platform.database_url)


async def test_a_wiped_namespace_is_rebuilt_to_the_same_records(url: str) -> None:
    chance = random.Random(5)
    life = [
        told(kind, f"n{n}", version, path=f"{version}/n{n}")
        for n in range(30)
        for version, kind in enumerate(
            (
                FilestoreNodeCreated,
                FilestoreNodeMoved,
                FilestoreNodeMissing,
                FilestoreNodeReconciled,
                FilestoreNodeDeleted,
            )[: 1 + n % 5],
            1,
        )
    ]
    chance.shuffle(life)
    await tell(url, *life, imported(["i1", "i2"]))
    await settled(url)
    before = records(url)
    assert len(before) == 32
    intact = await rebuilt(url)
    assert (intact["changed"], intact["events"]) == (0, len(life) + 1)
    assert records(url) == before

    run(url, "DELETE FROM metastore.records")
    run(url, "DELETE FROM metastore.record_audits")
    assert (await rebuilt(url))["changed"] >= 32
    assert records(url) == before

    # Only the records are lost; their history is there and goes on.
    run(url, "DELETE FROM metastore.records WHERE key LIKE 'n1%%'")
    await rebuilt(url)
    assert without_versions(records(url)) == without_versions(before)


async def test_damaged_records_are_repaired_and_what_people_wrote_stays(url: str) -> None:
    names = ["moved", "ahead", "lost", "hidden", "shown", "fine"]
    await tell(url, *(told(FilestoreNodeCreated, name, 1) for name in names))
    await tell(url, told(FilestoreNodeDeleted, "shown", 2))
    await settled(url)
    ours = Patch.of({"metadata": {"quality": "gold"}, "tags": {"add": ["raw"]}, "owner": "ops"})
    await nodes.change(url, *(Amend(NAMESPACE, name, ours) for name in names[:4]))
    await settled(url)
    before = records(url)
    spoil = "UPDATE metastore.records SET metadata = jsonb_set(metadata, %s, %s) WHERE key = %s"
    run(url, spoil, ["filestore", "path"], '"elsewhere"', "moved")
    run(url, spoil, ["filestore", "version"], "999", "ahead")
    run(url, "UPDATE metastore.records SET metadata = metadata - 'filestore' WHERE key = 'lost'")
    run(url, "UPDATE metastore.records SET deleted_at = now() WHERE key = 'hidden'")
    run(url, "UPDATE metastore.records SET deleted_at = NULL WHERE key = 'shown'")
    assert (await rebuilt(url))["changed"] == 5
    assert without_versions(records(url)) == without_versions(before)


def without_versions(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {**row, "version": None} for key, row in found.items()}


async def test_a_rebuild_runs_beside_the_live_sync(url: str) -> None:
    await tell(url, imported([f"n{n}" for n in range(400)]))
    await settled(url)
    run(url, "DELETE FROM metastore.records")
    run(url, "DELETE FROM metastore.record_audits")
    rebuilding = asyncio.create_task(rebuilt(url))
    for version in (2, 3):
        for start in range(0, 400, 100):
            changes = [
                told(FilestoreNodeUpdated, f"n{n}", version) for n in range(start, start + 100)
            ]
            await tell(url, *changes)
    await rebuilding
    await settled(url)
    found = records(url)
    assert len(found) == 400
    assert {row["metadata"]["filestore"]["version"] for row in found.values()} == {3}


async def test_a_log_that_was_restored_is_read_anew(url: str) -> None:
    await tell(url, told(FilestoreNodeCreated, "a", 1), told(FilestoreNodeUpdated, "a", 2))
    await settled(url)
    # The end of the log is lost, and with it the event that brought the record to version 2.
    with psycopg.connect(url) as conn:
        conn.execute(
            "DELETE FROM bus.workflow_events WHERE payload ->> 'version' = '2' OR type LIKE 'meta%'"
        )
        conn.execute("UPDATE bus.ingress_head SET last = 1, epoch = gen_random_uuid()")

    async def true_again() -> bool:
        return bool(records(url)["a"]["metadata"]["filestore"]["version"] == 1)

    await until(true_again)
    await tell(url, told(FilestoreNodeUpdated, "a", 2, path="other"))
    await settled(url)
    assert records(url)["a"]["metadata"]["filestore"]["path"] == "other"


async def test_another_namespace_is_filled_from_the_beginning(
    settings: Settings, start_part: StartPart
) -> None:
    settings = settings.model_copy(update={"redis_url": INLINE})
    url = str(settings.database_url)
    await start_part(open_relay, settings)
    first = await start_part(open_sync, settings)
    await tell(url, told(FilestoreNodeCreated, "a", 1))
    await settled(url)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    there = MetastoreSettings(filestore_namespace="files")
    await start_part(open_sync, settings.model_copy(update={"metastore": there}))

    async def filled() -> bool:
        return "a" in records(url, "files")

    await until(filled)
    assert set(records(url)) == {"a"}
