"""The filestore sync: every node has one true record, whatever comes twice, late or wrong; once
with Redis between the stores and the log, once without."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support import history, nodes
from tests.support.database import rows, value
from tests.support.nodes import (
    NAMESPACE,
    audits,
    imported,
    rebuilt,
    records,
    run,
    settled,
    tell,
    told,
    view,
)
from tests.support.waiting import until
from tristore.config import INLINE, MetastoreSettings, Settings
from tristore.errors import Refused, StartRefused
from tristore.events.payloads import (
    FilestoreNodeCopied,
    FilestoreNodeCreated,
    FilestoreNodeDeleted,
    FilestoreNodeMissing,
    FilestoreNodeMoved,
    FilestoreNodeReconciled,
    FilestoreNodeUpdated,
)
from tristore.metastore.changes import Amend, Delete, Purge
from tristore.metastore.hooks import Hooks
from tristore.metastore.model import Proposal, Record
from tristore.metastore.patching import Patch
from tristore.metastore.sync_control import CONSUMER as SYNC
from tristore.pipeline.log import CONSUMER as PIPELINE
from tristore.subscriptions import REACTIONS, types_of
from tristore.wiring import open_relay, open_sync

StartPart = Callable[..., Awaitable[asyncio.Task[None]]]


@pytest.fixture
def url(synced_platform: Settings) -> str:
    return str(synced_platform.database_url)


def refused(url: str) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in rows(url, "SELECT * FROM metastore.sync_refusals")}


async def test_a_record_follows_its_node_through_its_life(url: str) -> None:
    await tell(url, told(FilestoreNodeCreated, "a", 1), correlation_id="upload-1")
    await settled(url)
    assert records(url) == {
        "a": {
            "metadata": {"filestore": view("a", 1)},
            "tags": [],
            "owner": None,
            "version": 1,
            "deleted": False,
        }
    }
    ours = {"metadata": {"quality": "gold"}, "tags": {"add": ["raw"]}, "owner": "ops"}
    await nodes.change(url, Amend(NAMESPACE, "a", Patch.of(ours)))

    for version, kind, changes in (
        (2, FilestoreNodeUpdated, {"size_bytes": 77}),
        (3, FilestoreNodeMoved, {"path": "out/a", "previous_path": "in/a"}),
        (4, FilestoreNodeMissing, {"path": "out/a"}),
        (5, FilestoreNodeReconciled, {"path": "out/a"}),
        (6, FilestoreNodeDeleted, {"path": "out/a"}),
        (7, FilestoreNodeReconciled, {"path": "out/a", "outcome": "restored"}),
    ):
        payload = told(kind, "a", version, **changes)
        await tell(url, payload, correlation_id=f"step-{version}")
        await settled(url)
        found = records(url)["a"]
        said = payload.to_json()
        filestore = found["metadata"]["filestore"]
        assert {name: said[name] for name in filestore} == filestore
        assert found["metadata"]["quality"] == "gold"
        assert (found["tags"], found["owner"]) == (["raw"], "ops")
        assert found["deleted"] == (kind is FilestoreNodeDeleted)

    events = rows(
        url,
        "SELECT type, source, correlation_id, payload ->> 'actor' AS actor FROM bus.workflow_events"
        " WHERE source = 'metastore.sync' ORDER BY ingress_sequence",
    )
    kinds = ["created", *["updated"] * 4, "deleted", "created"]
    assert [event["type"] for event in events] == [f"metastore.record.{kind}" for kind in kinds]
    causes = ["upload-1", *(f"step-{version}" for version in range(2, 8))]
    assert [event["correlation_id"] for event in events] == causes
    assert {event["actor"] for event in events} == {"filestore.sync"}
    actions = [
        row["action"] for row in rows(url, "SELECT * FROM metastore.record_audits ORDER BY version")
    ]
    assert actions == ["create", *["update"] * 5, "delete", "restore"]


async def test_copies_and_imports_have_records_of_their_own(url: str) -> None:
    await tell(
        url,
        told(FilestoreNodeCreated, "a", 1),
        told(FilestoreNodeCopied, "b", 1, path="copy/a", source_node_id="a"),
        imported([f"i{n}" for n in range(500)]),
        told(FilestoreNodeUpdated, "i7", 2),
    )
    await settled(url)
    found = records(url)
    assert len(found) == 502
    assert found["b"]["metadata"]["filestore"]["path"] == "copy/a"
    assert found["i7"]["metadata"]["filestore"] == view("i7", 2)
    assert found["i8"]["metadata"]["filestore"] == {
        **view("i8", 1, path="old/i8", sizeBytes=5, checksum=None),
        "journalId": 7,
    }


async def test_what_comes_again_or_late_changes_nothing(url: str) -> None:
    life = [
        told(FilestoreNodeCreated, "a", 1),
        told(FilestoreNodeUpdated, "a", 2),
        told(FilestoreNodeDeleted, "a", 3),
    ]
    await tell(url, *reversed(life))
    await settled(url)
    assert records(url)["a"]["metadata"]["filestore"]["version"] == 3
    assert records(url)["a"]["deleted"]
    before = audits(url)
    await tell(url, *life, *life)
    await tell(url, imported(["a"]))
    await settled(url)
    assert audits(url) == before == 1


async def test_a_persons_deletion_stays_until_the_node_changes(url: str) -> None:
    await tell(url, told(FilestoreNodeCreated, "a", 1))
    await settled(url)
    await nodes.change(url, Delete(NAMESPACE, "a"))
    await tell(url, told(FilestoreNodeUpdated, "a", 1))
    await settled(url)
    assert records(url)["a"]["deleted"]
    assert (await rebuilt(url))["changed"] == 0
    await tell(url, told(FilestoreNodeUpdated, "a", 2))
    await settled(url)
    assert not records(url)["a"]["deleted"]


async def test_rules_refuse_a_record_and_the_sync_goes_on(url: str) -> None:
    await tell(url, told(FilestoreNodeCreated, "a", 1), told(FilestoreNodeCreated, "b", 1))
    await settled(url)
    owned = {"metadata": {}, "owner": "ops"}
    await nodes.change(url, Amend(NAMESPACE, "b", Patch.of(owned)))
    rule = "UPDATE metastore.namespaces SET require_owner = %s, version = version + 1"
    run(url, rule, True)
    await tell(url, *(told(FilestoreNodeUpdated, node, 2) for node in "abc"))
    await settled(url)
    assert set(refused(url)) == {"a", "c"}
    assert refused(url)["a"]["errors"][0]["path"] == "/owner"
    found = {key: row["metadata"]["filestore"]["version"] for key, row in records(url).items()}
    assert found == {"a": 1, "b": 2}
    # A later event that fits clears what was refused: a deleted record needs no owner.
    await tell(url, told(FilestoreNodeDeleted, "a", 3))
    await settled(url)
    assert set(refused(url)) == {"c"}
    run(url, rule, False)

    async def written() -> bool:
        return "c" in records(url)

    await until(written)
    assert records(url)["c"]["metadata"]["filestore"] == view("c", 2)
    assert refused(url) == {}


async def test_one_event_that_cannot_be_written_does_not_hold_up_the_others(url: str) -> None:
    run(
        url,
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.key = 'bad' THEN RAISE EXCEPTION 'no' USING ERRCODE = '22000'; END IF;
            RETURN NEW;
        END $$
        """,
    )
    run(
        url,
        "CREATE TRIGGER refuse BEFORE INSERT ON metastore.records "
        "FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    names = [*(f"n{n}" for n in range(40)), "bad", *(f"n{n}" for n in range(40, 60))]
    await tell(url, *(told(FilestoreNodeCreated, name, 1) for name in names))
    await settled(url)
    assert set(records(url)) == set(names) - {"bad"}
    assert {key: row["reason"] for key, row in refused(url).items()} == {"bad": "failed"}
    run(url, "DROP TRIGGER refuse ON metastore.records")
    run(url, "UPDATE metastore.sync_refusals SET rules_version = NULL")

    async def written() -> bool:
        return "bad" in records(url) and not refused(url)

    await until(written)


async def test_an_event_that_cannot_be_read_is_kept_and_passed(url: str) -> None:
    broken = history.made(1, type="filestore.node.created", payload={"nodeId": 5, "version": "x"})
    await history.store(url, [broken])
    await tell(url, told(FilestoreNodeCreated, "a", 1))
    await settled(url)
    assert set(records(url)) == {"a"}
    assert {key: row["reason"] for key, row in refused(url).items()} == {broken.id: "unreadable"}


async def test_a_purged_record_comes_back_with_the_next_event(url: str) -> None:
    await tell(url, told(FilestoreNodeCreated, "a", 1))
    await settled(url)
    await nodes.change(url, Purge(NAMESPACE, "a"))
    await tell(url, told(FilestoreNodeUpdated, "a", 2))
    await settled(url)
    assert records(url)["a"]["version"] == 3
    assert records(url)["a"]["metadata"] == {"filestore": view("a", 2)}


async def test_two_processes_apply_each_event_once(
    synced_platform: Settings, url: str, start_part: StartPart
) -> None:
    await start_part(open_sync, synced_platform)
    for version in range(1, 6):
        kind = FilestoreNodeUpdated if version > 1 else FilestoreNodeCreated
        await tell(url, *(told(kind, f"n{n}", version) for n in range(100)))
    await settled(url)
    assert {row["version"] for row in records(url).values()} == {5}
    assert audits(url) == 500


async def test_one_that_is_switched_off_does_not_start(settings: Settings) -> None:
    off = settings.model_copy(update={"metastore": MetastoreSettings(filestore_sync=False)})
    with pytest.raises(StartRefused, match="FILESTORE_SYNC"):
        async with open_sync(off):
            pass


def test_the_table_of_reactions_names_the_readers_there_are() -> None:
    assert {reader for readers in REACTIONS.values() for reader in readers} == {SYNC, PIPELINE}
    assert set(types_of(SYNC)) == {"filestore.node.*", "filestore.nodes.imported"}


async def test_a_far_position_in_the_log_is_no_obstacle(
    settings: Settings, start_part: StartPart
) -> None:
    """Numbers of the log and of the window together exceed 16 bits."""
    settings = settings.model_copy(update={"redis_url": INLINE})
    url = str(settings.database_url)
    history.fill(url, 33_000)
    await start_part(open_relay, settings)
    await start_part(open_sync, settings)
    await tell(url, told(FilestoreNodeCreated, "a", 1))
    await settled(url)
    assert set(records(url)) == {"a"}
    assert value(url, "SELECT last_error FROM bus.cursors") is None


async def test_a_hook_refuses_enriches_or_fails_and_the_sync_goes_on(
    settings: Settings, start_part: StartPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hook(before: Record | None, proposal: Proposal) -> Proposal:
        if proposal.key == "crash":
            raise ValueError("a bug")
        if proposal.key == "refused":
            raise Refused("not this one")
        return replace(proposal, tags=(*proposal.tags, "seen") if before is None else proposal.tags)

    monkeypatch.setattr(Hooks, "installed", lambda: Hooks([("test", hook)]))
    settings = settings.model_copy(update={"redis_url": INLINE})
    url = str(settings.database_url)
    await start_part(open_relay, settings)
    await start_part(open_sync, settings)
    names = ["a", "crash", "refused", "z"]
    await tell(url, *(told(FilestoreNodeCreated, name, 1) for name in names))
    await settled(url)
    assert {key: row["tags"] for key, row in records(url).items()} == {"a": ["seen"], "z": ["seen"]}
    said = {key: row["errors"][0]["message"] for key, row in refused(url).items()}
    assert said["refused"] == "not this one"
    assert "failed" in said["crash"] and "bug" not in said["crash"]
