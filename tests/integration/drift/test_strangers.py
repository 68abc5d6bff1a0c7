"""Drift: what changes behind the filestore's back is noticed once and settled."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.drift.strangers import STRANGERS, outcomes, settled
from tests.support.filestore import check, new_mount, write
from tests.support.upkeep import audit, told_of, watched
from tristore.config import Settings
from tristore.filestore.store import Filestore

DRIFT = "filestore.drift.detected"


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
