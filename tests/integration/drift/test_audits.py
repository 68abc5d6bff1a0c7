"""Audits: what happened in a storm, unwatched, or under one path."""

import asyncio
import os
from pathlib import Path
from typing import Any

from tests.integration.drift.strangers import settled
from tests.support.filestore import new_mount, tracked, write
from tests.support.upkeep import audit, imported, jobs_of, told_of, watched
from tests.support.waiting import until
from tristore.config import Settings
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore

DRIFT = "filestore.drift.detected"


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


async def _answer(value: Any) -> Any:
    return value


def _told_to_drift(filestore: Filestore, mount: Mount) -> list[str]:
    return [event["payload"]["path"] for event in told_of(filestore, mount, DRIFT)]


async def test_names_that_are_no_text_are_passed_over(filestore: Filestore, tmp_path: Path) -> None:
    """Also as the last of a directory, where the next look at the nodes would begin."""
    mount = await new_mount(filestore, tmp_path)
    for folder in (tmp_path, tmp_path / "new"):
        folder.mkdir(exist_ok=True)
        (folder / "known").write_bytes(b"1")
        Path(os.fsdecode(os.fsencode(folder / "z-") + b"\xff")).write_bytes(b"2")
    audited, again = await audit(filestore, mount), await imported(filestore, mount)
    assert audited.progress["skipped"] == again.progress["skipped"] == 2
    assert sorted(await tracked(filestore, mount)) == ["known", "new", "new/known"]
