"""Drift: what changes behind the filestore's back is noticed once and settled; what the filestore
does itself never is."""

import asyncio
import os
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.api import own_database, serving
from tests.support.filestore import ME, check, new_mount, own_filestore, settings_for, write
from tests.support.upkeep import audit, drifting, jobs_of, kept_up, told_of, watched
from tests.support.waiting import until
from tristore import failpoints
from tristore.config import Settings
from tristore.errors import ContentConflict, PathConflict, Transient, TristoreError
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore

DRIFT = "filestore.drift.detected"
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


@pytest.fixture(scope="module")
def settings(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    with own_database(server_url) as url:
        yield settings_for(url, tmp_path_factory.mktemp("data"))


@pytest.fixture
async def filestore(settings: Settings) -> AsyncIterator[Filestore]:
    async with own_filestore(settings) as filestore, kept_up(filestore):
        yield filestore


async def settled(filestore: Filestore, mount: Mount, root: Path) -> None:
    """Nothing waits, and disk, nodes, sums, journal and events tell one story."""

    async def agreed() -> bool:
        try:
            await check(filestore, mount, root)
        except AssertionError:
            return False
        return not drifting(filestore)

    try:
        await until(agreed, 15)
    finally:
        await check(filestore, mount, root)


def outcomes(filestore: Filestore, mount: Mount) -> list[tuple[str, str, str]]:
    """What was told since the mount was made: type, path, and reason or outcome."""
    return [
        (
            event["type"].removeprefix("filestore."),
            event["payload"]["path"],
            event["payload"].get("outcome") or event["payload"].get("reason", ""),
        )
        for event in told_of(filestore, mount)
        if event["type"] != "filestore.command.completed"
    ]


def overwritten(root: Path) -> None:
    (root / "a/f").write_bytes(b"longer than before")


def replaced(root: Path) -> None:
    (root / "new").write_bytes(b"other")
    os.rename(root / "new", root / "a/f")


def vanished(root: Path) -> None:
    (root / "a/f").unlink()


def touched(root: Path) -> None:
    os.utime(root / "a/f", ns=(1, 1))


def grown(root: Path) -> None:
    (root / "b/c/d").mkdir(parents=True)
    (root / "b/c/d/g").write_bytes(b"12345")


def renamed(root: Path) -> None:
    os.rename(root / "a", root / "z")


def removed(root: Path) -> None:
    shutil.rmtree(root / "a")


def file_to_directory(root: Path) -> None:
    (root / "a/f").unlink()
    (root / "a/f").mkdir()
    (root / "a/f/inside").write_bytes(b"1")


def directory_to_file(root: Path) -> None:
    shutil.rmtree(root / "a")
    (root / "a").write_bytes(b"a file now")


def linked(root: Path) -> None:
    (root / "a/f").unlink()
    (root / "a/f").symlink_to("/etc/passwd")


# What strangers do, and what must be told of it, paths and outcomes.
STRANGERS: list[tuple[Callable[[Path], None], Counter[tuple[str, str, str]]]] = [
    (
        overwritten,
        Counter([("drift.detected", "a/f", "modified"), ("node.reconciled", "a/f", "updated")]),
    ),
    (vanished, Counter([("drift.detected", "a/f", "deleted"), ("node.missing", "a/f", "missing")])),
    (
        touched,
        Counter([("drift.detected", "a/f", "modified"), ("node.reconciled", "a/f", "unchanged")]),
    ),
    (linked, Counter([("drift.detected", "a/f", "deleted"), ("node.missing", "a/f", "missing")])),
    (
        grown,
        Counter(
            [
                ("drift.detected", "b", "created"),
                ("node.reconciled", "b", "created"),
                ("node.reconciled", "b/c", "created"),
                ("node.reconciled", "b/c/d", "created"),
                ("node.reconciled", "b/c/d/g", "created"),
            ]
        ),
    ),
    (
        removed,
        Counter(
            [
                ("drift.detected", "a", "deleted"),
                ("node.missing", "a", "missing"),
                ("node.missing", "a/f", "missing"),
            ]
        ),
    ),
    (
        renamed,
        Counter(
            [
                ("drift.detected", "a", "deleted"),
                ("drift.detected", "z", "created"),
                ("node.missing", "a", "missing"),
                ("node.missing", "a/f", "missing"),
                ("node.reconciled", "z", "created"),
                ("node.reconciled", "z/f", "created"),
            ]
        ),
    ),
    (
        file_to_directory,
        Counter(
            [
                ("drift.detected", "a/f", "kindChanged"),
                ("node.deleted", "a/f", ""),
                ("node.reconciled", "a/f", "created"),
                ("node.reconciled", "a/f/inside", "created"),
            ]
        ),
    ),
    (
        directory_to_file,
        Counter(
            [
                ("drift.detected", "a", "kindChanged"),
                ("node.deleted", "a/f", ""),
                ("node.deleted", "a", ""),
                ("node.reconciled", "a", "created"),
            ]
        ),
    ),
]


@pytest.mark.parametrize(
    ("change", "expected"), STRANGERS, ids=[change.__name__ for change, _ in STRANGERS]
)
async def test_an_audit_finds_it(
    filestore: Filestore,
    tmp_path: Path,
    change: Callable[[Path], None],
    expected: Counter[tuple[str, str, str]],
) -> None:
    mount = await new_mount(filestore, tmp_path)
    await write(filestore, mount, "a/f", b"before")
    before = outcomes(filestore, mount)
    change(tmp_path)
    job = await audit(filestore, mount)
    # Whoever waited for the audit finds everything settled.
    await check(filestore, mount, tmp_path)
    assert Counter(outcomes(filestore, mount)) - Counter(before) == expected
    assert job.progress["drifted"] == sum(what[0] == "drift.detected" for what in expected)
    causes = {
        e["payload"]["reason"] for e in told_of(filestore, mount, "filestore.node.reconciled")
    }
    assert causes <= {"request"}
    found = told_of(filestore, mount)[len(told_of(filestore, mount)) - sum(expected.values()) :]
    assert {event["correlationId"] for event in found} == {"corr-job"}
    assert {event["source"] for event in found} == {"filestore.reconcile"}


async def test_the_watcher_finds_each_of_them(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        for number, (change, _) in enumerate(STRANGERS):
            folder = f"round-{number}"
            await write(filestore, mount, f"{folder}/a/f", b"before")
            change(tmp_path / folder)
            await settled(filestore, mount, tmp_path)
    detections = told_of(filestore, mount, DRIFT)
    assert {event["source"] for event in detections} == {"filestore.watch"}
    reasons = {event["payload"]["reason"] for event in detections}
    assert reasons == {"created", "modified", "deleted", "kindChanged"}


async def test_what_the_filestore_does_itself_is_no_drift(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    """Commands of every kind from eight clients, while a watcher and one audit after another
    compare what they leave."""
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        done = audits = 0
        for first in (0, 8):  # twice, so that audits run beside commands more than once
            numbers = range(first, first + 8)
            clients = asyncio.gather(*(_client(filestore, mount, number) for number in numbers))
            while not clients.done():
                await audit(filestore, mount)
                audits += 1
            done += sum(await clients)
        await audit(filestore, mount)
        # Seen by the same watch, so it has passed over all that came before.
        (tmp_path / "stranger").write_bytes(b"1")
        await until(lambda: _answer(told_of(filestore, mount, DRIFT)))
        await settled(filestore, mount, tmp_path)
    assert done > 300 and audits > 1
    assert _told_to_drift(filestore, mount) == ["stranger"]


async def _client(filestore: Filestore, mount: Mount, number: int) -> int:
    """Puts, overwrites, makes, moves, copies and deletes, files and trees."""
    done = 0
    for turn in range(8):
        here = f"c{number}/t{turn}"
        await write(filestore, mount, f"{here}/f", b"x" * turn)
        await write(filestore, mount, f"{here}/f", b"y" * (turn + 1))
        await filestore.create_directory(ME, mount.name, f"{here}/made/below")
        await filestore.copy(ME, mount.name, f"{here}/f", f"{here}/made/g")
        await filestore.move(ME, mount.name, f"{here}/made", f"{here}/moved")
        await filestore.delete(ME, mount.name, f"{here}/f")
        done += 6
        if turn % 2:
            await filestore.delete(ME, mount.name, here, recursive=True)
            done += 1
    return done


async def _answer(value: Any) -> Any:
    return value


async def test_a_storm_is_settled_in_few_pieces(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        for number in range(2000):
            (tmp_path / "hot").write_bytes(b"%d" % number)
            if number % 20 == 0:
                await asyncio.sleep(0)
        await settled(filestore, mount, tmp_path)
    assert 1 <= len(told_of(filestore, mount, DRIFT)) < 100


async def test_what_happened_while_nobody_watched(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    mount = await new_mount(filestore, tmp_path)
    await write(filestore, mount, "gone", b"soon")
    (tmp_path / "gone").unlink()
    (tmp_path / "came").write_bytes(b"meanwhile")
    async with watched(filestore, settings, mount):
        await settled(filestore, mount, tmp_path)
    assert [job["reason"] for job in jobs_of(filestore, mount, "reconcile")] == ["started"]


async def test_files_that_wait_for_an_import_are_no_drift(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "old").write_bytes(b"here before the mount")
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        (tmp_path / "new").write_bytes(b"here after")
        await until(lambda: _answer(told_of(filestore, mount, "filestore.node.reconciled")))
    assert _told_to_drift(filestore, mount) == ["new"]
    assert jobs_of(filestore, mount, "reconcile") == []


async def test_a_scheduled_audit(filestore: Filestore, tmp_path: Path) -> None:
    mount = await new_mount(filestore, tmp_path, auditSeconds=1)
    (tmp_path / "f").write_bytes(b"1")
    await settled(filestore, mount, tmp_path)
    assert jobs_of(filestore, mount, "reconcile")[0]["reason"] == "schedule"
    (event,) = told_of(filestore, mount, "filestore.node.reconciled")
    assert event["payload"]["reason"] == "audit"


async def test_only_what_lies_under_the_asked_path(filestore: Filestore, tmp_path: Path) -> None:
    mount = await new_mount(filestore, tmp_path)
    await write(filestore, mount, "a/f", b"1")
    for path in ("a/f", "a/g", "b"):
        (tmp_path / path).write_bytes(b"other")
    await audit(filestore, mount, "a")
    assert sorted(_told_to_drift(filestore, mount)) == ["a/f", "a/g"]


async def test_a_command_and_a_stranger_at_one_path(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    """Whoever wins, the tree says what lies there."""
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        for turn in range(30):
            (tmp_path / "f").write_bytes(b"stranger %d" % turn)
            try:
                await write(filestore, mount, "f", b"ours %d" % turn)
            except TristoreError as error:
                assert isinstance(error, Transient | ContentConflict | PathConflict), error
        await settled(filestore, mount, tmp_path)


@pytest.fixture
async def unattended(settings: Settings) -> AsyncIterator[Filestore]:
    """Nobody reconciles."""
    async with own_filestore(settings) as filestore:
        yield filestore


async def test_an_overflow_degrades_the_mount_until_an_audit_makes_up_for_it(
    unattended: Filestore, settings: Settings, tmp_path: Path
) -> None:
    filestore = unattended
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"")
    mount = await new_mount(filestore, tmp_path)
    async with watched(filestore, settings, mount):
        # In one go: the watcher shares this loop and cannot read meanwhile.
        for number in range(int(QUEUE.read_text()) + 10):
            os.chmod(tmp_path / "ab"[number % 2], 0o600)
        (tmp_path / "unseen").write_bytes(b"1")
        await until(lambda: _degraded(filestore, mount))
        await _shown_to_operators(settings, mount)
        async with kept_up(filestore):
            await settled(filestore, mount, tmp_path)
            await until(lambda: _not_degraded(filestore, mount))
    assert {job["reason"] for job in jobs_of(filestore, mount, "reconcile")} == {"overflow"}


async def _degraded(filestore: Filestore, mount: Mount) -> str | None:
    (found,) = [m for m in await filestore.mounts(ME) if m.name == mount.name]
    return found.degraded


async def _not_degraded(filestore: Filestore, mount: Mount) -> bool:
    return await _degraded(filestore, mount) is None


async def _shown_to_operators(settings: Settings, mount: Mount) -> None:
    """With the reason, and that nobody works; without the name, for nobody must show a token."""
    async with asyncio.timeout(40):
        with serving(settings) as api:
            async with httpx.AsyncClient(base_url=api.url, timeout=5) as client:
                body: dict[str, Any] = {}
                while "stuck" not in body.get("checks", {}).get("reconcile", ""):
                    await asyncio.sleep(0.1)
                    body = (await client.get("/readyz")).json()
                assert "some were lost" in body["degraded"]["filestore"]
                assert mount.name not in str(body)
                page = await client.get("/metrics", headers=api.bearer("events:read"))
                assert "tristore_filestore_degraded_mounts 1" in page.text
                queued = 'tristore_filestore_jobs{kind="reconcile",state="queued"} '
                lines = [line for line in page.text.splitlines() if line.startswith(queued)]
                assert [float(line.removeprefix(queued)) >= 1 for line in lines] == [True]


async def test_exhausted_watches_degrade_the_mount(
    filestore: Filestore, settings: Settings, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    mount = await new_mount(filestore, tmp_path)
    failpoints.arm("watch.add:enospc:*")
    try:
        async with watched(filestore, settings, mount):
            why = await until(lambda: _degraded(filestore, mount))
            assert why and "max_user_watches" in why
            (tmp_path / "f").write_bytes(b"the rest is watched")
            await until(lambda: _answer("f" in _told_to_drift(filestore, mount)))
    finally:
        failpoints.arm("")


def _told_to_drift(filestore: Filestore, mount: Mount) -> list[str]:
    return [event["payload"]["path"] for event in told_of(filestore, mount, DRIFT)]
