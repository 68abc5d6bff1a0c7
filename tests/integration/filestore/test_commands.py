"""The filestore's commands, on a real folder and a real database."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import filestore as support
from tests.support.database import rows
from tests.support.filestore import ME, check, new_mount, read, tree, write
from tests.support.waiting import until
from tristore import errors
from tristore.filestore.model import Caller, Mount
from tristore.filestore.store import Filestore


def replace_caller(correlation: str) -> Caller:
    return replace(ME, correlation_id=correlation)


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


async def test_no_path_outgrows_what_can_be_asked_for(store: Filestore, mount: Mount) -> None:
    longest = "/".join(["a", *["d" * 254] * 16, "f" * 14])
    assert len(longest) == 4096
    await write(store, mount, longest, b"1")
    for command in (store.move, store.copy):
        with pytest.raises(errors.InvalidPath, match="4096"):
            await command(ME, mount.name, "a", "bb")
    await store.move(ME, mount.name, "a", "b")
    assert await read(store, mount, f"b{longest[1:]}") == b"1"
    assert len(await support.tracked(store, mount)) == 18
