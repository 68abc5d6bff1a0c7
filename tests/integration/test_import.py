"""Import: a tree that lies on a mount already becomes tracked, whole, once, beside other work."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api import own_database
from tests.support.filestore import (
    ME,
    check,
    new_mount,
    own_filestore,
    settings_for,
    told,
    tracked,
    write,
)
from tests.support.s3 import S3Server, moto
from tests.support.upkeep import audit, imported, kept_up, told_of
from tristore.config import FilestoreSettings, Settings
from tristore.errors import KeyConflict
from tristore.filestore import changes, jobs, journal
from tristore.filestore.announce import About
from tristore.filestore.changes import Changes, Step
from tristore.filestore.claims import Want
from tristore.filestore.jobs import JobRequest
from tristore.filestore.journal import Intent
from tristore.filestore.model import Caller
from tristore.filestore.store import Filestore

IMPORTED = "filestore.nodes.imported"
DRIFT = "filestore.drift.detected"


@pytest.fixture(scope="module")
def bucket() -> Iterator[S3Server]:
    with moto() as server:
        yield server


@pytest.fixture(scope="module")
def settings(
    server_url: str, bucket: S3Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    few = FilestoreSettings(chunk_nodes=50, wait_seconds=5, allowed_endpoints=bucket.url)
    with own_database(server_url) as url:
        yield settings_for(url, tmp_path_factory.mktemp("data"), few)


@pytest.fixture
async def filestore(settings: Settings) -> AsyncIterator[Filestore]:
    async with own_filestore(settings) as filestore, kept_up(filestore):
        yield filestore


def grow(root: Path, folders: int = 4, files: int = 40) -> int:
    """A tree whose names sort differently as paths than level by level; says how many nodes."""
    for folder in range(folders):
        for name in (f"d{folder}/deep", f"d{folder}-x", f"d{folder}.y"):
            (root / name).mkdir(parents=True)
        for number in range(files):
            (root / f"d{folder}/deep/f{number}").write_bytes(b"x" * number)
    return folders * (4 + files)


def nodes_told(filestore: Filestore, mount: Any) -> list[dict[str, Any]]:
    events = told_of(filestore, mount, IMPORTED)
    return [node for event in events for node in event["payload"]["nodes"]]


async def test_a_tree_is_tracked_whole(filestore: Filestore, tmp_path: Path) -> None:
    count = grow(tmp_path)
    mount = await new_mount(filestore, tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "back\\slash").write_bytes(b"1")
    job = await imported(filestore, mount)
    (tmp_path / "pipe").unlink()
    (tmp_path / "back\\slash").unlink()
    nodes = await check(filestore, mount, tmp_path)
    assert len(nodes) == count
    assert {node.checksum for node in nodes.values()} == {None}
    assert (job.progress["imported"], job.progress["skipped"]) == (count, 3)
    events = told_of(filestore, mount, IMPORTED)
    assert {len(event["payload"]["nodes"]) for event in events[:-1]} == {50}
    assert {event["source"] for event in events} == {"filestore.import"}
    assert {event["correlationId"] for event in events} == {"corr-job"}
    # Each chunk is a finished entry of the journal, in the name of who asked.
    entries = [e for e in await filestore.journal(ME, 0, 100) if e.mount == mount.name]
    assert [(e.command, e.state, e.principal) for e in entries] == [
        ("import", "completed", "tester")
    ] * len(events)
    assert sum(entry.nodes_affected for entry in entries) == count


async def test_again_only_what_is_new(filestore: Filestore, tmp_path: Path) -> None:
    grow(tmp_path, folders=1)
    mount = await new_mount(filestore, tmp_path)
    await write(filestore, mount, "d0/deep/ours", b"ours")
    await imported(filestore, mount)
    assert "d0/deep/ours" not in {node["path"] for node in nodes_told(filestore, mount)}
    (tmp_path / "d0/later").mkdir()
    (tmp_path / "d0/later/f").write_bytes(b"1")
    assert (await imported(filestore, mount)).progress["imported"] == 2
    assert (await imported(filestore, mount)).progress["imported"] == 0
    await check(filestore, mount, tmp_path)
    # What is imported and unchanged is no drift.
    assert (await audit(filestore, mount)).progress["drifted"] == 0


async def test_one_directory_with_its_checksums(filestore: Filestore, tmp_path: Path) -> None:
    grow(tmp_path, folders=2)
    mount = await new_mount(filestore, tmp_path)
    await imported(filestore, mount, "d1/deep", checksums=True)
    nodes = await tracked(filestore, mount)
    assert {"d1", "d1/deep"} <= nodes.keys()
    assert all(path.startswith("d1/deep/") for path in nodes.keys() - {"d1", "d1/deep"})
    assert all(n.checksum for n in nodes.values() if n.kind == "file")
    await imported(filestore, mount)
    await check(filestore, mount, tmp_path)


async def test_commands_go_on_meanwhile(filestore: Filestore, tmp_path: Path) -> None:
    """Uploads into the very directories that are being imported, over their very files too."""
    grow(tmp_path, folders=6, files=60)
    mount = await new_mount(filestore, tmp_path)

    async def uploads(folder: int) -> None:
        for number in range(40):
            await write(filestore, mount, f"d{folder}/deep/mine{number}", b"ours")
            await write(filestore, mount, f"d{folder}/n{number}/g", b"ours")

    clients = asyncio.gather(*map(uploads, range(6)))
    await imported(filestore, mount)
    await clients
    await imported(filestore, mount)
    await check(filestore, mount, tmp_path)
    assert told_of(filestore, mount, DRIFT) == []
    assert set((await told(filestore, mount.name)).ended.values()) == {"completed"}


async def test_what_commands_work_on_is_left_to_them(filestore: Filestore, tmp_path: Path) -> None:
    grow(tmp_path, folders=3)
    mount = await new_mount(filestore, tmp_path)
    wanted = [Want(mount.id, "d0/deep/f7"), Want(mount.id, "d1", subtree=True)]
    # Wanted for a directory that a command is about to make: then it is the command's to track.
    wanted.append(Want(mount.id, "d2/deep/f9", makes=True))
    intent = Intent(
        command="put",
        mount=mount,
        path="d0/deep/f7",
        caller=ME,
        owner=filestore.bench.owner.id,
        wanted=wanted,
        plan={"token": "t"},
    )
    filestore.bench.owner.in_hand.add("t")
    async with filestore.bench.pool.connection() as conn:
        begun = await journal.begin(conn, intent, {mount.id: mount.name})
        await imported(filestore, mount)
        tree = await tracked(filestore, mount)
        assert {"d0/deep/f6", "d0/deep/f8", "d1-x", "d2-x"} <= tree.keys()
        assert not [path for path in tree if path in ("d0/deep/f7", "d1", "d2")]
        assert not [path for path in tree if path.startswith(("d1/", "d2/"))]
        step = Step(owner=intent.owner, caller=ME, state="failed")
        assert await changes.apply(conn, Changes(About(begun.journal_id, "put")), step)
    await imported(filestore, mount)
    assert len(await tracked(filestore, mount)) == 3 * 44


async def test_a_mount_has_one_job_at_a_time(settings: Settings, tmp_path: Path) -> None:
    async with own_filestore(settings) as filestore:
        mount = await new_mount(filestore, tmp_path)
        owner = filestore.bench.owner.id
        async with filestore.bench.pool.connection() as conn:
            first = await jobs.create(conn, mount, JobRequest("import"), ME)
            second = await jobs.create(conn, mount, JobRequest("reconcile"), ME)
            taken = await jobs.take(conn, owner)
            assert taken is not None and taken.id == first.id
            assert await jobs.take(conn, owner) is None
            assert await jobs.finish(conn, taken, owner, {})
            taken = await jobs.take(conn, owner)
            assert taken is not None and taken.id == second.id
            assert await jobs.finish(conn, taken, owner, {})


async def test_a_key_makes_one_job(settings: Settings, tmp_path: Path) -> None:
    async with own_filestore(settings) as filestore, filestore.bench.pool.connection() as conn:
        mount = await new_mount(filestore, tmp_path)
        token = "00000000-0000-0000-0000-000000000001"
        caller = Caller(token_id=token, idempotency_key="k")
        first = await jobs.create(conn, mount, JobRequest("import", "a"), caller)
        assert await jobs.create(conn, mount, JobRequest("import", "a"), caller) == first
        with pytest.raises(KeyConflict):
            await jobs.create(conn, mount, JobRequest("import", "b"), caller)
        owner = filestore.bench.owner.id
        while taken := await jobs.take(conn, owner):
            await jobs.finish(conn, taken, owner, {})


async def test_a_bucket(
    filestore: Filestore, bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imported, changed by strangers, audited; its directories exist only as nodes."""
    for name, value in bucket.environment("S3_IMPORT").items():
        monkeypatch.setenv(name, value)
    spec = {"name": "bucket", "kind": "s3", "bucket": bucket.bucket, "endpoint": bucket.url}
    stranger = bucket.open()
    for key in ("a/b/c", "a/d", "e"):
        await stranger.put(key, b"before", {}, None)
    mount = await filestore.create_mount(ME, {**spec, "credentials": "env:S3_IMPORT"})
    job = await imported(filestore, mount)
    assert sorted(await tracked(filestore, mount)) == ["a", "a/b", "a/b/c", "a/d", "e"]
    assert job.progress["imported"] == 5
    for key in ("a/d", "a/b/c"):
        await stranger.delete(key)
    for key, content in (("a/d", b"changed"), ("x/y", b"new")):
        await stranger.put(key, content, {}, None)
    job = await audit(filestore, mount)
    assert job.progress["drifted"] == 3
    nodes = await tracked(filestore, mount)
    states = {path: node.state for path, node in nodes.items()}
    assert states == dict.fromkeys(("a", "a/b", "a/d", "e", "x", "x/y"), "active") | {
        "a/b/c": "missing"
    }
    assert nodes["a/d"].checksum and nodes["x/y"].checksum
    rollup = await filestore.rollups([(await filestore.by_path(ME, "bucket", "")).id])
    assert [(r.size_bytes, r.files, r.directories) for r in rollup.values()] == [(16, 3, 3)]
    assert (await audit(filestore, mount)).progress["drifted"] == 0
