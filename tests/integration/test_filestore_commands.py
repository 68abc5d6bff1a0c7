"""The filestore's commands, on a real folder and a real database."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.support import filestore as support
from tests.support.api import own_database
from tests.support.database import rows, value
from tests.support.filestore import ME, SMALL_CHUNKS, check, content, new_mount, read, write
from tests.support.waiting import until
from tristore import errors
from tristore.filestore import doctor, housekeeping
from tristore.filestore.model import Caller, Mount, Rollup
from tristore.filestore.store import Filestore


@pytest.fixture(scope="module")
def database(server_url: str) -> Iterator[str]:
    with own_database(server_url) as url:
        yield url


@pytest.fixture
async def store(database: str, tmp_path: Path) -> AsyncIterator[Filestore]:
    settings = support.settings_for(database, tmp_path / "data", SMALL_CHUNKS)
    async with support.own_filestore(settings) as filestore:
        yield filestore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
async def mount(store: Filestore, folder: Path) -> Mount:
    return await new_mount(store, folder)


async def tree(store: Filestore, mount: Mount) -> None:
    for number in range(5):
        await write(store, mount, f"in/deep/f{number}", b"x" * (number + 1))
    await write(store, mount, "in/top", b"top")
    await store.create_directory(ME, mount.name, "in/empty")


async def test_a_file_reads_back_with_its_versions(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    first = await write(store, mount, "in/a.txt", b"one", metadata={"k": 1})
    second = await write(store, mount, "in/a.txt", b"three", if_match=1)
    assert (first.id, first.version, second.version) == (second.id, 1, 2)
    assert await read(store, mount, "in/a.txt") == b"three"
    assert second.metadata == {"k": 1}
    versions, _ = await store.history(ME, first.id)
    assert [(v.version, v.size_bytes, v.principal) for v in versions] == [
        (2, 5, "tester"),
        (1, 3, "tester"),
    ]
    await check(store, mount, folder)


async def test_what_is_refused_changes_nothing(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    await write(store, mount, "a/f", b"old")
    name = mount.name
    refusals: list[tuple[type[Exception], Any]] = [
        (errors.VersionMismatch, lambda: write(store, mount, "a/f", b"x", if_match=7)),
        (errors.VersionMismatch, lambda: write(store, mount, "a/new", b"x", if_match=1)),
        (errors.PathConflict, lambda: write(store, mount, "a/f", b"x", if_none_match=True)),
        (errors.PathConflict, lambda: write(store, mount, "a", b"x")),
        (errors.PathConflict, lambda: write(store, mount, "a/f/g", b"x")),
        (errors.ChecksumMismatch, lambda: write(store, mount, "a/f", b"x", checksum="sha256:00")),
        (errors.ChecksumMismatch, lambda: write(store, mount, "a/f", b"x", size=2)),
        (errors.InvalidPath, lambda: write(store, mount, "../x", b"x")),
        (errors.PathConflict, lambda: store.create_directory(ME, name, "a")),
        (errors.PathConflict, lambda: store.create_directory(ME, name, "a/f")),
        (errors.NotFound, lambda: store.move(ME, name, "none", "b")),
        (errors.PathConflict, lambda: store.move(ME, name, "a", "a/b")),
        (errors.PathConflict, lambda: store.copy(ME, name, "a", "a/f")),
        (errors.PathConflict, lambda: store.copy(ME, name, "a/f", "a/f")),
        (errors.VersionMismatch, lambda: store.move(ME, name, "a/f", "b", if_match=9)),
        (errors.NotFound, lambda: store.delete(ME, name, "none")),
        (errors.PathConflict, lambda: store.delete(ME, name, "a", recursive=False)),
        (errors.VersionMismatch, lambda: store.delete(ME, name, "a/f", if_match=9)),
        (errors.NotFound, lambda: store.update_metadata(ME, name, "none", {})),
        (errors.InvalidRequest, lambda: store.update_metadata(ME, name, "a/f", {"x": "\0"})),
        (errors.NotFound, lambda: store.create_directory(ME, "none", "a")),
    ]
    entries = len(await store.journal(ME, limit=1000))
    for expected, attempt in refusals:
        with pytest.raises(expected):
            await attempt()
    assert support.on_disk(folder) == {"a": None, "a/f": b"old"}
    assert len(await store.journal(ME, limit=1000)) == entries, "a refusal is no change"
    staging = [path for path in (folder / ".tristore").rglob("*") if path.is_file()]
    assert staging == []
    await check(store, mount, folder)


@pytest.mark.parametrize("background", [False, True])
async def test_a_tree_moves_is_copied_and_deleted_in_chunks(
    store: Filestore, mount: Mount, folder: Path, background: bool
) -> None:
    await tree(store, mount)
    before = await store.by_path(ME, mount.name, "in/deep/f3")
    name = mount.name

    async def done(outcome: Any) -> None:
        assert outcome.under_way is background
        await until(lambda: _ended(store, outcome.journal_id))

    await done(await store.move(ME, name, "in", "moved/here", background=background))
    after = await store.by_path(ME, name, "moved/here/deep/f3")
    assert (after.id, after.version) == (before.id, before.version + 1)
    await check(store, mount, folder)
    await done(await store.copy(ME, name, "moved/here", "copy", background=background))
    assert (await store.by_path(ME, name, "copy/deep/f3")).id != before.id
    nodes = await check(store, mount, folder)
    assert len(nodes) == 2 * 9 + 1
    await done(await store.delete(ME, name, "moved", background=background))
    gone = await store.node(ME, before.id)
    assert gone.state == "deleted"
    assert set(await check(store, mount, folder)) == {
        "copy",
        "copy/deep",
        *(f"copy/deep/f{n}" for n in range(5)),
        "copy/empty",
        "copy/top",
    }


async def _ended(store: Filestore, journal_id: int) -> bool:
    entry = await store.entry(ME, journal_id)
    assert entry.state != "failed", entry.error
    return entry.state == "completed"


async def test_every_node_of_a_recursive_command_is_told(
    store: Filestore, mount: Mount, database: str
) -> None:
    await tree(store, mount)
    outcome = await store.delete(replace_caller("del-7"), mount.name, "in")
    query = "SELECT envelope::json e FROM bus.outbox WHERE envelope LIKE %s ORDER BY id"
    told = [row["e"] for row in rows(database, query, '%"correlationId":"del-7"%')]
    types = [event["type"] for event in told]
    assert types == ["filestore.node.deleted"] * 9 + ["filestore.command.completed"]
    assert {event["source"] for event in told} == {"filestore.api"}
    assert sum(event["payload"]["sizeDelta"] for event in told[:-1]) == -18
    last = told[-1]["payload"]
    assert (last["journalId"], last["nodesAffected"]) == (outcome.journal_id, 9)
    assert (last["bytes"], last["principal"]) == (18, "tester")


def replace_caller(correlation: str) -> Caller:
    return replace(ME, correlation_id=correlation)


async def test_between_mounts(store: Filestore, mount: Mount, folder: Path) -> None:
    other_folder = folder.with_name("other")
    other = await new_mount(store, other_folder)
    await tree(store, mount)
    node = await store.by_path(ME, mount.name, "in/deep/f4")
    await store.copy(ME, mount.name, "in", "copied", other.name)
    await store.move(ME, mount.name, "in/top", "moved/top", other.name)
    await store.move(ME, mount.name, "in", "all", other.name)
    assert (await store.node(ME, node.id)).path == "all/deep/f4"
    assert support.on_disk(folder) == {}
    assert await check(store, mount, folder) == {}
    assert len(await check(store, other, other_folder)) == 9 + 2 + 8


async def test_metadata_is_merged(store: Filestore, mount: Mount, folder: Path) -> None:
    await write(store, mount, "f", b"x", metadata={"a": {"b": 1, "c": 2}, "d": 3})
    patch = {"a": {"b": None, "e": [1]}, "d": None, "n": {"m": None}}
    outcome = await store.update_metadata(ME, mount.name, "f", patch, if_match=1)
    assert outcome.node.metadata == {"a": {"c": 2, "e": [1]}, "n": {}}
    assert outcome.node.version == 2
    await check(store, mount, folder)


async def test_an_idempotency_key_is_answered_once(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    keyed = replace(ME, token_id=uuid4(), idempotency_key="k1")
    name = mount.name
    first = await store.put(keyed, name, "f", content(b"x"))
    again = await store.put(keyed, name, "f", content(b"x"))
    assert (again.node, again.journal_id, again.replayed) == (first.node, first.journal_id, True)
    with pytest.raises(errors.KeyConflict):
        await store.put(keyed, name, "f", content(b"y"))
    with pytest.raises(errors.KeyConflict):
        await store.delete(keyed, name, "f")
    other = replace(keyed, token_id=uuid4())
    assert not (await store.put(other, name, "f", content(b"y"))).replayed
    for key, command in {
        "move": lambda by: store.move(by, name, "f", "g"),
        "copy": lambda by: store.copy(by, name, "g", "h"),
        "delete": lambda by: store.delete(by, name, "h"),
        "mkdir": lambda by: store.create_directory(by, name, "d"),
        "meta": lambda by: store.update_metadata(by, name, "g", {"a": 1}),
    }.items():
        by = replace(ME, token_id=uuid4(), idempotency_key=key)
        first, again = await command(by), await command(by)
        assert (again.replayed, again.node) == (True, first.node)
    await check(store, mount, folder)


async def test_two_requests_with_one_key_at_once_are_one(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    keyed = replace(ME, token_id=uuid4(), idempotency_key="k")
    attempts = [store.put(keyed, mount.name, "f", content(b"x")) for _ in range(8)]
    outcomes = await asyncio.gather(*attempts)
    assert sum(not outcome.replayed for outcome in outcomes) == 1
    assert len({outcome.journal_id for outcome in outcomes}) == 1
    assert (await check(store, mount, folder))["f"].version == 1


async def test_a_failed_command_frees_its_key(store: Filestore, mount: Mount, folder: Path) -> None:
    await write(store, mount, "f", b"old")
    (folder / "f").write_bytes(b"changed behind its back")
    keyed = replace(ME, token_id=uuid4(), idempotency_key="k")
    with pytest.raises(errors.ChangedOutside):
        await store.put(keyed, mount.name, "f", content(b"new"))
    assert (folder / "f").read_bytes() == b"changed behind its back"
    (failed,) = [e for e in await store.journal(ME, limit=1000) if e.command == "put"][-1:]
    assert (failed.state, failed.idempotency_key) == ("failed", "k")
    outcome = await store.put(keyed, mount.name, "g", content(b"new"))
    assert not outcome.replayed


async def test_content_changed_outside_is_not_served_but_reconciled(
    store: Filestore, mount: Mount, folder: Path, database: str
) -> None:
    await write(store, mount, "f", b"old")
    (folder / "f").write_bytes(b"changed behind its back")
    with pytest.raises(errors.ChangedOutside):
        await read(store, mount, "f")
    with pytest.raises(errors.ChangedOutside):
        await store.copy(ME, mount.name, "f", "g")
    with pytest.raises(errors.ChangedOutside):
        await store.move(ME, mount.name, "f", "g")
    with pytest.raises(errors.ChangedOutside):
        await store.delete(ME, mount.name, "f")
    query = "SELECT path FROM filestore.drifts WHERE mount_id = %s"
    assert [row["path"] for row in rows(database, query, mount.id)] == ["f"]
    assert support.on_disk(folder) == {"f": b"changed behind its back"}


async def test_an_unknown_file_in_the_way_is_kept(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    (folder / "f").write_bytes(b"a stranger's")
    with pytest.raises(errors.ChangedOutside):
        await write(store, mount, "f", b"new")
    assert (folder / "f").read_bytes() == b"a stranger's"


async def test_a_copy_that_fails_half_way_leaves_nothing(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    await tree(store, mount)
    (folder / "in/deep/f3").unlink()
    with pytest.raises(errors.ChangedOutside):
        await store.copy(ME, mount.name, "in", "copy")
    assert not (folder / "copy").exists()
    with pytest.raises(errors.NotFound):
        await store.by_path(ME, mount.name, "copy")
    (failed,) = [e for e in await store.journal(ME, limit=1000) if e.command == "copy"][-1:]
    assert (failed.mount, failed.state) == (mount.name, "failed")


async def test_an_observed_mount_takes_no_commands(store: Filestore, folder: Path) -> None:
    mount = await new_mount(store, folder, access="observe")
    (folder / "f").write_bytes(b"x")
    for attempt in (
        lambda: write(store, mount, "g", b"x"),
        lambda: store.create_directory(ME, mount.name, "d"),
        lambda: store.delete(ME, mount.name, "f"),
        lambda: store.move(ME, mount.name, "f", "g"),
    ):
        with pytest.raises(errors.ReadOnly):
            await attempt()
    assert not (folder / ".tristore").exists()


async def test_a_limited_caller_sees_nothing_of_other_mounts(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    node = await write(store, mount, "f", b"x")
    other = await new_mount(store, folder.with_name("other"))
    limited = replace(ME, mounts=[other.name])
    entry = (await store.journal(ME, limit=1000))[-1]
    absent = "there is no mount called"
    for attempt in (
        lambda: store.put(limited, mount.name, "g", content(b"")),
        lambda: store.nodes(limited, mount.name),
        lambda: store.move(limited, other.name, "a", "b", mount.name),
        lambda: store.open_file(limited, mount.name, "f"),
    ):
        with pytest.raises(errors.NotFound, match=absent):
            await attempt()
    for attempt in (
        lambda: store.node(limited, node.id),
        lambda: store.children(limited, node.parent_id or 0),
        lambda: store.history(limited, node.id),
        lambda: store.entry(limited, entry.id),
    ):
        with pytest.raises(errors.NotFound):
            await attempt()
    assert [found.name for found in await store.mounts(limited)] == [other.name]
    assert await store.journal(limited, limit=1000) == []
    assert mount.name in {found.name for found in await store.mounts(ME)}


async def test_lists_are_paged_in_order(store: Filestore, mount: Mount) -> None:
    for path in ("b/2", "b/1", "b/3/x", "b-x", "b0", "a"):
        await write(store, mount, path, path.encode())
    found, cursor, seen = [], None, 0
    while True:
        page, cursor = await store.nodes(ME, mount.name, "b", None, None, 2, cursor)
        found += [node.path for node in page]
        seen += 1
        if cursor is None:
            break
    assert (found, seen) == (["b/1", "b/2", "b/3", "b/3/x"], 2)
    top = await store.by_path(ME, mount.name, "b")
    names, cursor = await store.children(ME, top.id, 2)
    rest, end = await store.children(ME, top.id, 2, cursor)
    assert [node.name for node in (*names, *rest)] == ["1", "2", "3"] and end is None
    directories, _ = await store.nodes(ME, mount.name, kind="directory")
    assert [node.path for node in directories] == ["b", "b/3"]
    await store.delete(ME, mount.name, "b/1")
    await write(store, mount, "b/1", b"")
    await store.delete(ME, mount.name, "b/1")
    deleted, cursor = await store.nodes(ME, mount.name, state="deleted", limit=1)
    more, end = await store.nodes(ME, mount.name, state="deleted", limit=1, cursor=cursor)
    assert [n.path for n in (*deleted, *more)] == ["b/1", "b/1"] and end is None
    assert deleted[0].id != more[0].id
    with pytest.raises(errors.InvalidQuery):
        await store.nodes(ME, mount.name, cursor="nonsense")


async def test_the_feed_shows_nothing_behind_an_open_entry(
    store: Filestore, mount: Mount, database: str
) -> None:
    last = (await store.journal(ME, limit=1000))[-1:]
    after = last[0].id if last else 0
    await write(store, mount, "a", b"1")
    with psycopg.connect(database) as conn:
        # A command between its two commits, of an owner that is alive elsewhere.
        query = """INSERT INTO filestore.journal_entries (command, mount_id, path)
            VALUES ('put', %s, 'held') RETURNING id"""
        (held,) = conn.execute(query, [mount.id]).fetchone() or (0,)
        query = "INSERT INTO filestore.claims VALUES (%s, 'held', false, %s)"
        conn.execute(query, [mount.id, held])
        conn.commit()
        await write(store, mount, "b", b"2")
        assert [entry.path for entry in await store.journal(ME, after)] == ["a"]
        assert (await store.entry(ME, held)).state == "applying"
        conn.execute("DELETE FROM filestore.claims WHERE journal_id = %s", [held])
        conn.execute("UPDATE filestore.journal_entries SET state = 'failed' WHERE id = %s", [held])
    found = await store.journal(ME, after)
    assert [entry.path for entry in found] == ["a", "held", "b"]
    assert [entry.path for entry in await store.journal(ME, found[1].id)] == ["b"]


async def test_the_feed_waits_for_numbers_not_yet_committed(
    store: Filestore, mount: Mount, database: str
) -> None:
    last = (await store.journal(ME, limit=1000))[-1:]
    after = last[0].id if last else 0
    async with await psycopg.AsyncConnection.connect(database) as conn:
        await conn.execute("SELECT pg_advisory_xact_lock_shared(7441, 0)")
        query = """INSERT INTO filestore.journal_entries (command, mount_id, path, state)
            VALUES ('import', %s, 'slow', 'completed')"""
        await conn.execute(query, [mount.id])
        await write(store, mount, "quick", b"2")
        reading = asyncio.create_task(store.journal(ME, after))
        done, _ = await asyncio.wait({reading}, timeout=0.3)
        assert not done, "it would have skipped an entry for ever"
        await conn.commit()
        assert [entry.path for entry in await reading] == ["slow", "quick"]


async def test_busy_paths_wait_and_say_for_whom(
    store: Filestore, mount: Mount, database: str
) -> None:
    await tree(store, mount)
    store.bench.settings = SMALL_CHUNKS.model_copy(update={"wait_seconds": 0.2})
    with psycopg.connect(database, autocommit=True) as conn:
        query = "INSERT INTO filestore.claims VALUES (%s, 'in/deep', true, 4711)"
        conn.execute(query, [mount.id])
        for attempt in (
            lambda: write(store, mount, "in/deep/f1", b"x"),
            lambda: write(store, mount, "in/deep/new/f", b"x"),
            lambda: store.delete(ME, mount.name, "in"),
            lambda: store.move(ME, mount.name, "in/top", "in/deep/top"),
        ):
            with pytest.raises(errors.Busy, match="4711"):
                await attempt()
        await write(store, mount, "in/deeper", b"not in that tree")
        store.bench.settings = SMALL_CHUNKS
        waiting = asyncio.create_task(write(store, mount, "in/deep/f1", b"x"))
        await asyncio.wait({waiting}, timeout=0.1)
        conn.execute("DELETE FROM filestore.claims WHERE mount_id = %s", [mount.id])
    assert (await waiting).version == 2


async def test_many_writers_in_one_tree(store: Filestore, mount: Mount, folder: Path) -> None:
    """Every sum is right, nobody waits for ever, and no update is lost."""
    store.bench.settings = SMALL_CHUNKS.model_copy(update={"wait_seconds": 60})

    async def writer(number: int) -> None:
        for turn in range(6):
            await write(store, mount, f"t/{turn % 3}/own-{number}", bytes(number + turn))
            await write(store, mount, f"t/{turn % 3}/shared", bytes(turn))
        await store.copy(ME, mount.name, f"t/0/own-{number}", f"c/{number}/f")
        await store.move(ME, mount.name, f"c/{number}", f"m/{number}")
        if number % 2:
            await store.delete(ME, mount.name, f"m/{number}")

    async with asyncio.timeout(90):
        await asyncio.gather(*(writer(number) for number in range(8)))
    nodes = await check(store, mount, folder)
    assert nodes["t/0/shared"].version == 16
    assert len([path for path in nodes if path.startswith("m/")]) == 8


async def test_a_reader_meets_whole_versions_while_they_change(
    store: Filestore, mount: Mount
) -> None:
    await write(store, mount, "f", bytes(1000))
    writing = True

    async def reader() -> int:
        count = 0
        while writing:
            data = await read(store, mount, "f")
            assert len(data) == 1000 and len(set(data)) == 1
            count += 1
        return count

    readers = [asyncio.create_task(reader()) for _ in range(4)]
    for number in range(60):
        await write(store, mount, "f", bytes([number % 250]) * 1000)
    writing = False
    assert all([await one for one in readers])


async def test_a_missing_file_comes_back_by_a_put(
    store: Filestore, mount: Mount, folder: Path, database: str
) -> None:
    node = await write(store, mount, "d/f", b"12345")
    with psycopg.connect(database, autocommit=True) as conn:
        # As the reconciler leaves them, with the sums it takes off.
        query = "UPDATE filestore.nodes SET state = 'missing' WHERE mount_id = %s AND path = %s"
        conn.execute(query, [mount.id, "d/f"])
        conn.execute(query, [mount.id, "d"])
    await doctor.examine(store.bench.pool, mount, repair=True)
    (folder / "d/f").unlink()
    (folder / "d").rmdir()
    with pytest.raises(errors.PathConflict, match="missing"):
        await store.copy(ME, mount.name, "d/f", "e")
    back = await write(store, mount, "d/f", b"123", if_none_match=True)
    assert (back.id, back.version, back.state) == (node.id, 2, "active")
    nodes = await support.tracked(store, mount)
    assert await support.sums(store, mount, nodes) == support.counted(nodes)
    payloads = [
        row["p"]
        for row in rows(
            database,
            """SELECT envelope::json -> 'payload' p FROM bus.outbox
               WHERE envelope::json ->> 'type' = 'filestore.node.updated'
               AND envelope::json #>> '{payload,mount}' = %s ORDER BY id""",
            mount.name,
        )
    ]
    assert [(p["path"], p["sizeDelta"]) for p in payloads] == [("d", 0), ("d/f", 3)]


async def test_the_doctor_finds_and_repairs_wrong_sums(
    store: Filestore, mount: Mount, database: str
) -> None:
    await tree(store, mount)
    top = await store.by_path(ME, mount.name, "in")
    right = await store.rollup(top.id)
    assert await doctor.examine(store.bench.pool, mount) == []
    with psycopg.connect(database, autocommit=True) as conn:
        query = "UPDATE filestore.rollups SET files = files + 3 WHERE node_id = %s"
        conn.execute(query, [top.id])
    (found,) = await doctor.examine(store.bench.pool, mount)
    assert (found.path, found.counted) == ("in", right)
    assert await doctor.examine(store.bench.pool, mount, repair=True) == [found]
    assert await doctor.examine(store.bench.pool, mount) == []
    assert await store.rollup(top.id) == right == Rollup(18, 6, 2)


async def test_housekeeping_sweeps_what_nobody_needs(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    blobs = await store.blobs(mount)
    await blobs.stage("abandoned", content(b"x"), "f")
    await blobs.stage("held", content(b"x"), "g")
    store.bench.owner.in_hand.add("held")
    old = SMALL_CHUNKS.model_copy(update={"staging_keep_seconds": -1})
    store.bench.settings = old
    assert await housekeeping.sweep(store) >= 1
    left = [path.name for path in (folder / ".tristore").rglob("*") if path.is_file()]
    assert left == ["held"]


async def test_a_caller_who_leaves_does_not_stop_a_command_half_way(
    store: Filestore, mount: Mount, folder: Path, database: str
) -> None:
    await tree(store, mount)
    moving = asyncio.create_task(store.move(ME, mount.name, "in", "out"))
    query = "SELECT count(*) FROM filestore.claims WHERE mount_id = %s"
    await until(lambda: asyncio.to_thread(value, database, query, mount.id))
    moving.cancel()
    await until(lambda: _free(database, mount))
    assert set(await check(store, mount, folder)) >= {"out", "out/deep/f4"}


async def _free(database: str, mount: Mount) -> bool:
    query = "SELECT count(*) = 0 FROM filestore.claims WHERE mount_id = %s"
    return bool(await asyncio.to_thread(value, database, query, mount.id))


async def test_a_mount_is_made_once_and_only_where_it_may_be(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    spec = {"name": mount.name, "kind": "local", "root": str(folder)}
    below = folder / "below"
    below.mkdir()
    (folder.parent / "all").symlink_to(folder)
    with pytest.raises(errors.PathConflict):
        await store.create_mount(ME, spec)
    again = await store.create_mount(replace(ME, idempotency_key="k"), spec)
    assert again.id == mount.id
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        (errors.InvalidQuery, {"name": "Bad Name"}),
        (errors.InvalidRequest, {"kind": "ftp"}),
        (errors.InvalidRequest, {"root": 5}),
        (errors.InvalidRequest, {"secret": "x"}),
        (errors.MountRefused, {"root": "/etc"}),
        (errors.MountRefused, {}),
        (errors.MountRefused, {"root": str(folder.parent / "all")}),
        (errors.MountRefused, {"root": str(below)}),
    ]
    for number, (expected, fields) in enumerate(refused):
        with pytest.raises(expected):
            await store.create_mount(ME, {**spec, "name": f"{mount.name}-{number}", **fields})
