"""Whatever tells of changes: it names them all, also in directories that are new, or says that it
lost some."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tristore import failpoints
from tristore.filestore.hints import Notices
from tristore.filestore.notices_inotify import InotifyNotices
from tristore.filestore.notices_watchfiles import WatchfilesNotices

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


@pytest.fixture(params=[InotifyNotices, WatchfilesNotices])
async def notices(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Notices]:
    (tmp_path / "old/deep").mkdir(parents=True)
    (tmp_path / ".tristore/staging").mkdir(parents=True)
    (tmp_path / "old/f").write_bytes(b"1")
    async with request.param(str(tmp_path)) as notices:
        yield notices


@pytest.fixture
def no_watches_left() -> Iterator[None]:
    """For the third directory."""
    failpoints.arm("watch.add:enospc:3")
    yield
    failpoints.arm("")


async def named(notices: Notices, expected: set[str]) -> set[str]:
    found: set[str] = set()
    async with asyncio.timeout(60):
        while not expected <= found:
            found |= (await notices.next()).paths
    return found


async def test_every_kind_of_change(notices: Notices, tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"1")
    (tmp_path / "old/f").write_bytes(b"2")
    await named(notices, {"made", "old/f"})
    os.rename(tmp_path / "old/f", tmp_path / "old/deep/g")
    await named(notices, {"old/f", "old/deep/g"})
    (tmp_path / "old/deep/g").unlink()
    os.truncate(tmp_path / "made", 0)
    await named(notices, {"old/deep/g", "made"})


async def test_a_new_tree_is_named_whole_and_watched(notices: Notices, tmp_path: Path) -> None:
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/b/c/f").write_bytes(b"1")
    await named(notices, {"a", "a/b", "a/b/c", "a/b/c/f"})
    (tmp_path / "a/b/c/g").write_bytes(b"1")
    await named(notices, {"a/b/c/g"})


async def test_a_renamed_directory_reports_under_its_new_name(
    notices: Notices, tmp_path: Path
) -> None:
    os.rename(tmp_path / "old", tmp_path / "new")
    await named(notices, {"old", "new"})
    (tmp_path / "new/deep/f").write_bytes(b"1")
    await named(notices, {"new/deep/f"})


async def test_what_is_removed_from_a_directory_that_was_just_renamed(tmp_path: Path) -> None:
    """It is not there to be named when the directory is looked through under its new name."""
    (tmp_path / "old/deep").mkdir(parents=True)
    for name in ("old/f", "old/deep/g"):
        (tmp_path / name).write_bytes(b"1")
    async with InotifyNotices(str(tmp_path)) as notices:
        os.rename(tmp_path / "old", tmp_path / "new")
        for name in ("new/f", "new/deep/g"):
            (tmp_path / name).unlink()
        await named(notices, {"old", "new", "new/f", "new/deep/g"})


async def test_what_was_removed_from_a_directory_just_before_it_was_renamed(tmp_path: Path) -> None:
    """Whoever moves the directory may know the file still, and then does under the new name."""
    (tmp_path / "old/deep").mkdir(parents=True)
    for name in ("old/f", "old/deep/g"):
        (tmp_path / name).write_bytes(b"1")
    async with InotifyNotices(str(tmp_path)) as notices:
        (tmp_path / "old/f").unlink()
        await named(notices, {"old/f"})
        (tmp_path / "old/deep/g").unlink()
        os.rename(tmp_path / "old", tmp_path / "new")
        os.rename(tmp_path / "new", tmp_path / "newer")
        await named(notices, {"old/deep/g", "newer/f", "newer/deep/g"})


async def test_a_directory_that_left_is_not_reported(tmp_path: Path) -> None:
    root, away = tmp_path / "root", tmp_path / "away"
    (root / "old/deep").mkdir(parents=True)
    async with InotifyNotices(str(root)) as notices:
        os.rename(root / "old", away)
        await named(notices, {"old"})
        (away / "deep/f").write_bytes(b"1")
        (root / "last").write_bytes(b"1")
        assert await named(notices, {"last"}) == {"last"}


async def test_staging_and_odd_names_are_not_hinted_at(notices: Notices, tmp_path: Path) -> None:
    (tmp_path / ".tristore/staging/token").write_bytes(b"1")
    (tmp_path / "old/back\\slash").write_bytes(b"1")
    (tmp_path / "last").write_bytes(b"1")
    assert await named(notices, {"last"}) == {"last"}


async def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    async with InotifyNotices(str(tmp_path)) as notices:
        with open(os.fsencode(tmp_path) + b"/\xff", "wb"):
            pass
        (tmp_path / "last").write_bytes(b"1")
        assert await named(notices, {"last"}) == {"last"}


async def test_an_overflow_is_told(tmp_path: Path) -> None:
    """While this loop does not read, the system can only queue so many."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"")
    async with InotifyNotices(str(tmp_path)) as notices:
        for number in range(int(QUEUE.read_text()) + 10):
            os.chmod(tmp_path / "ab"[number % 2], 0o600)
        (tmp_path / "unseen").write_bytes(b"1")
        async with asyncio.timeout(60):
            lost = None
            while lost is None:
                hints = await notices.next()
                assert "unseen" not in hints.paths
                lost = hints.lost
        assert lost == "overflow"
        (tmp_path / "later").write_bytes(b"1")
        await named(notices, {"later"})


async def test_exhausted_watches_are_told(tmp_path: Path, no_watches_left: None) -> None:
    for number in range(5):
        (tmp_path / f"d{number}").mkdir()
    async with InotifyNotices(str(tmp_path)) as notices:
        assert not notices.whole
        assert (await notices.next()).lost == "exhausted"
        (tmp_path / "seen").write_bytes(b"1")
        await named(notices, {"seen"})


async def test_a_root_that_goes_away(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    async with InotifyNotices(str(root)) as notices:
        os.rename(root, tmp_path / "elsewhere")
        assert (await notices.next()).lost == "gone"
