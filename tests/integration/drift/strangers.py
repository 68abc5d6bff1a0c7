"""What strangers do to a folder, and what must be told of it."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.filestore import check
from tests.support.upkeep import drifting, told_of
from tests.support.waiting import until
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore


async def settled(filestore: Filestore, mount: Mount, root: Path) -> None:
    """Nothing waits, and disk, nodes, sums, journal and events tell one story."""

    async def agreed() -> bool:
        try:
            await check(filestore, mount, root)
        except AssertionError:
            return False
        return not drifting(filestore)

    try:
        await until(agreed, 60)
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
