"""A mount of which something may have been missed says so, and is audited."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.drift.strangers import settled
from tests.support.api import serving
from tests.support.filestore import ME, new_mount, own_filestore, tracked
from tests.support.upkeep import jobs_of, kept_up, told_of, watched
from tests.support.waiting import until
from tristore import failpoints
from tristore.config import Settings
from tristore.filestore import watch
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore

DRIFT = "filestore.drift.detected"


QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


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
    async with asyncio.timeout(90):
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


async def test_a_folder_that_is_removed_and_made_anew_is_watched_again(
    filestore: Filestore, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "AWAY_SECONDS", 0.1)
    root = tmp_path / "root"
    mount = await new_mount(filestore, root, access="observe")

    async def states() -> dict[str, str]:
        return {path: node.state for path, node in (await tracked(filestore, mount)).items()}

    async def stand(expected: dict[str, str]) -> bool:
        return await states() == expected

    async with watched(filestore, settings, mount):
        (root / "before").write_bytes(b"1")
        await until(lambda: stand({"before": "active"}))
        shutil.rmtree(root)
        why = await until(lambda: _degraded(filestore, mount))
        assert why and "the folder is gone" in why
        root.mkdir()
        await until(lambda: stand({"before": "missing"}))
        await until(lambda: _not_degraded(filestore, mount))
        (root / "after").write_bytes(b"2")
        await until(lambda: stand({"before": "missing", "after": "active"}))


def _told_to_drift(filestore: Filestore, mount: Mount) -> list[str]:
    return [event["payload"]["path"] for event in told_of(filestore, mount, DRIFT)]


async def _answer(value: Any) -> Any:
    return value
