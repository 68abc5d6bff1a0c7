"""The filestore sync under faults: at the end each node has exactly one true record."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from faults.stage import BUS, SMALL_JOBS, Outcome, Stage
from tests.support import history, nodes
from tests.support.nodes import checksum, records, tell, told
from tests.support.waiting import wait_until
from tristore.events.envelope import Event
from tristore.events.payload import Payload
from tristore.events.payloads import (
    FilestoreNodeCreated,
    FilestoreNodeDeleted,
    FilestoreNodeMissing,
    FilestoreNodeMoved,
    FilestoreNodeReconciled,
    FilestoreNodeUpdated,
)

POINTS = ["sync.after_effect", "sync.before_commit", "sync.after_commit"]
LIFE = (
    FilestoreNodeCreated,
    FilestoreNodeUpdated,
    FilestoreNodeMoved,
    FilestoreNodeMissing,
    FilestoreNodeReconciled,
    FilestoreNodeDeleted,
)
APPLIED = """
    SELECT c.sequence = h.last FROM bus.cursors c, bus.ingress_head h
    WHERE c.consumer = 'tristore.metastore.sync'
"""
TOLD = "SELECT count(*) FROM bus.outbox WHERE source = 'metastore.sync'"


def killed(stage: Stage, point: str) -> Outcome:
    """F21: kill -9 between the effect and the cursor, before and after their one commit."""
    per_fault = max(len(LIFE), stage.events // stage.faults)
    for fault in range(stage.faults):
        asyncio.run(_append(stage, _lives(f"k{fault}-", per_fault)))
        with stage.part("work", "sync", TRISTORE_FAILPOINTS=f"{point}:exit9:1") as process:
            wait_until(process.was_killed)
    with stage.part("work", "sync"):
        stage.wait_for(APPLIED, True)
    events = stage.faults * per_fault
    # Each event once: a version, an audit row and an event to tell of it.
    assert nodes.audits(stage.url) == events
    assert stage.value(TOLD) == events
    for fault in range(stage.faults):
        _check(stage, f"k{fault}-", per_fault)
    return Outcome(events, stage.faults)


def shuffled(stage: Stage) -> Outcome:
    """F25: what comes in any order, twice and a day late ends as what comes in order."""
    count = stage.events
    disorder = 2 * _lives("b-", count)
    stage.chance.shuffle(disorder)
    asyncio.run(_append(stage, _lives("a-", count)))
    yesterday = datetime.now(UTC) - timedelta(hours=24)
    half = len(disorder) // 2
    with stage.part("work", "sync"):
        asyncio.run(_append(stage, disorder[:half]))
        stage.wait_for(APPLIED, True)
        asyncio.run(_append(stage, disorder[half:], occurredAt=yesterday.isoformat()))
        stage.wait_for(APPLIED, True)
    in_order, late = _check(stage, "a-", count), _check(stage, "b-", count)
    assert in_order == late
    return Outcome(3 * count, len(disorder))


def redis_away(stage: Stage) -> Outcome:
    """F25: files change while Redis is stopped and started; the records catch up with all."""
    lives, share = _lives("r-", stage.events), max(1, stage.events // (2 * stage.faults + 1))
    with stage.own_redis() as (there, redis), there.part("work", f"{BUS},sync", **SMALL_JOBS):
        for fault in range(stage.faults):
            start = 2 * fault * share
            asyncio.run(tell(there.url, *lives[start : start + share]))
            redis.stop()
            asyncio.run(tell(there.url, *lives[start + share : start + 2 * share]))
            redis.start()
        asyncio.run(tell(there.url, *lives[2 * stage.faults * share :]))
        there.settle()
        there.wait_for(nodes.QUIET, True)
    _check(stage, "r-", stage.events)
    assert nodes.audits(stage.url) <= stage.events
    return Outcome(stage.events, stage.faults)


def _lives(prefix: str, count: int) -> list[Payload]:
    """`count` events of as few nodes as tell a whole life each, one life after the other."""
    return [
        told(LIFE[n % len(LIFE)], f"{prefix}{n // len(LIFE)}", 1 + n % len(LIFE))
        for n in range(count)
    ]


async def _append(stage: Stage, payloads: list[Payload], **fields: Any) -> None:
    """Straight into the log: the way there has scenarios of its own."""
    made = [
        Event.make(p.TYPE, p.to_json(), source="filestore.api", schemaVersion=1, **fields)
        for p in payloads
    ]
    await history.store(stage.url, made)


def _check(stage: Stage, prefix: str, count: int) -> list[tuple[dict[str, Any], bool]]:
    """One record per node, and it says what the last event of the node's life says."""
    found = {key: row for key, row in records(stage.url).items() if key.startswith(prefix)}
    wanted = {payload.to_json()["nodeId"]: payload.to_json() for payload in _lives(prefix, count)}
    assert found.keys() == wanted.keys()
    for key, last in wanted.items():
        view = found[key]["metadata"]["filestore"]
        assert {name: last[name] for name in view} == view, key
        assert view["checksum"] == checksum(view["version"])
        assert found[key]["deleted"] == (last["state"] == "deleted"), key
    names = sorted(found, key=lambda key: int(key.removeprefix(prefix)))
    return [(_anonymous(found[name]["metadata"]), found[name]["deleted"]) for name in names]


def _anonymous(metadata: dict[str, Any]) -> dict[str, Any]:
    view = metadata["filestore"]
    return {**metadata, "filestore": {**view, "nodeId": "", "path": ""}}
