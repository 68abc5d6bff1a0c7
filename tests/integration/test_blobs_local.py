"""A mounted folder among strangers, special files and disks that come and go."""

import asyncio
import errno
import os
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.waiting import until
from tristore.errors import (
    ContentConflict,
    ContentGone,
    ContentUnreadable,
    MountRefused,
    TristoreError,
    Unavailable,
)
from tristore.filestore.beneath import Beneath
from tristore.filestore.blobs import Blobs, Entry
from tristore.filestore.blobs_local import LocalBlobs
from tristore.filestore.disk import Disk

MIB = 1024 * 1024


@pytest.fixture
async def blobs(tmp_path: Path) -> AsyncIterator[Blobs]:
    mount = LocalBlobs(Beneath(tmp_path))
    await mount.probe()
    yield mount
    await mount.aclose()


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def put(blobs: Blobs, path: str, data: bytes, token: str = "put") -> None:
    there = await blobs.stat(path)
    await blobs.stage(token, stream(data), path)
    await blobs.publish(token, path, replaces=there.fingerprint if there else None)


async def content(blobs: Blobs, path: str) -> bytes:
    _, pieces = await blobs.read(path)
    return b"".join([piece async for piece in pieces])


async def walked(blobs: Blobs) -> dict[str, str]:
    return {entry.path: entry.kind async for batch in blobs.walk() for entry in batch}


def staged(root: Path) -> list[str]:
    return [name for area in ("staging", "trash") for name in _names(root / ".tristore" / area)]


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []


async def test_special_files_are_neither_read_nor_waited_for(blobs: Blobs, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name in ("pipe", "link", "socket"):
            for read in (blobs.read, blobs.checksum, lambda p: blobs.stage_copy("t", p, "to")):
                with pytest.raises(ContentUnreadable):
                    await asyncio.wait_for(read(name), 60)
            found = await blobs.stat(name)
            assert found is not None and found.kind == "other"
    assert await walked(blobs) == dict.fromkeys(["link", "pipe", "socket"], "other")
    assert staged(tmp_path) == []


async def test_a_hard_link_is_an_ordinary_file(blobs: Blobs, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    os.link(tmp_path / "a", tmp_path / "b")
    assert await content(blobs, "b") == b"1"


async def test_names_that_no_path_can_hold_are_passed_over(blobs: Blobs, tmp_path: Path) -> None:
    for name in (b"back\\slash", b"not-utf8-\xff", b"line\nbreak", b"CON"):
        folder = os.path.join(os.fsencode(tmp_path), name)
        os.mkdir(folder)
        with open(os.path.join(folder, b"inside"), "wb"):
            pass
    await put(blobs, "plain", b"1")
    found = await walked(blobs)
    assert found.pop("plain") == "file"
    assert len(found) == 4 and set(found.values()) == {"other"}


async def test_a_directory_that_cannot_be_listed_is_told(tmp_path: Path) -> None:
    class Locked(Beneath):
        def open_directory(self, path: str) -> int:
            if path == "locked":
                raise PermissionError(errno.EACCES, "no")
            return super().open_directory(path)

    for name in ("a", "locked/x", "locked-not", "z"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    blobs = LocalBlobs(Locked(tmp_path))
    await blobs.probe()
    found = [(e.path, e.kind) async for batch in blobs.walk() for e in batch]
    await blobs.aclose()
    assert found == [
        ("a", "file"),
        ("locked", "directory"),
        ("locked-not", "file"),
        ("locked", "unreadable"),
        ("z", "file"),
    ]


async def test_directories_move_and_go_whole(blobs: Blobs, tmp_path: Path) -> None:
    for path in ("d/a", "d/e/b", "other/x"):
        await put(blobs, path, path.encode())
    await blobs.move("d", "new/place")
    assert await blobs.stat("d") is None
    assert await content(blobs, "new/place/e/b") == b"d/e/b"
    for target in ("other", "new/place/inside"):
        with pytest.raises(TristoreError):
            await blobs.move("new/place", target)
    await blobs.remove("new", "gone")
    assert await walked(blobs) == {"other": "directory", "other/x": "file"}
    assert staged(tmp_path) == ["gone"]
    # Repeated after a crash, when somebody has made the path anew: theirs stays.
    await put(blobs, "new/x", b"newer")
    await blobs.remove("new", "gone")
    assert await content(blobs, "new/x") == b"newer"
    await blobs.discard("gone")
    assert staged(tmp_path) == []


async def test_the_trash_is_swept_by_the_time_of_the_removal(blobs: Blobs, tmp_path: Path) -> None:
    await put(blobs, "old/f", b"1")
    os.utime(tmp_path / "old/f", (1, 1))
    await blobs.remove("old/f", "file")
    await blobs.remove("old", "folder")
    assert await blobs.sweep(60, set()) == 0
    assert await blobs.sweep(-1, {"file"}) == 1
    assert staged(tmp_path) == ["file"]


async def test_a_tree_as_deep_as_paths_reach_goes_for_good(blobs: Blobs, tmp_path: Path) -> None:
    try:
        for depth in range(1, 1200):
            (tmp_path / "/".join("d" * depth)).mkdir()
        (tmp_path / "d/d/f").write_bytes(b"1")
        (tmp_path / "d/link").symlink_to("/etc")
        await blobs.remove("d", "gone")
        await blobs.discard("gone")
        assert staged(tmp_path) == []
        assert Path("/etc/passwd").exists()
    finally:
        # Too deep for the test runner to clear away.
        subprocess.run(["rm", "-rf", tmp_path / "d", tmp_path / ".tristore"], check=True)


async def test_what_cannot_be_removed_keeps_nothing_else(
    blobs: Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        await put(blobs, name, b"1")
        await blobs.remove(name, name)

    def refuse(disk: Disk, directory: int, name: str) -> None:
        if name == "a":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        os.unlink(name, dir_fd=directory)

    monkeypatch.setattr(Disk, "remove", refuse)
    assert await blobs.sweep(-1, set()) == 1
    assert staged(tmp_path) == ["a"]


async def test_the_filestores_own_folder_may_be_lost(blobs: Blobs, tmp_path: Path) -> None:
    await put(blobs, "a", b"1")
    os.rmdir(tmp_path / ".tristore/staging")
    await put(blobs, "b", b"2")
    assert await walked(blobs) == {"a": "file", "b": "file"}
    assert (tmp_path / ".tristore").stat().st_mode & 0o777 == 0o700


async def test_an_unmounted_disk_is_not_taken_for_an_empty_one(
    blobs: Blobs, tmp_path: Path
) -> None:
    """What stands at the root's path decides: an empty mount point, then the disk again."""
    root, elsewhere = tmp_path, tmp_path.parent / f"{tmp_path.name}-unmounted"
    await put(blobs, "d/f", b"1")
    await blobs.stage("t", stream(b"2"), "g")
    root.rename(elsewhere)

    async def refuses() -> None:
        for call in (
            blobs.stat("d/f"),
            blobs.stage("u", stream(b"2"), "g"),
            blobs.publish("t", "g"),
            blobs.remove("d/f", "r"),
            blobs.make_directory("e"),
            walked(blobs),
        ):
            with pytest.raises(Unavailable, match="mounted"):
                await call

    await refuses()
    root.mkdir()
    await refuses()
    assert os.listdir(root) == []
    root.rmdir()
    elsewhere.rename(root)
    await blobs.publish("t", "g")
    assert await walked(blobs) == {"d": "directory", "d/f": "file", "g": "file"}


async def test_a_new_version_is_readable_by_whom_the_old_one_was(
    blobs: Blobs, tmp_path: Path
) -> None:
    await put(blobs, "f", b"1")
    (tmp_path / "f").chmod(0o640)
    await put(blobs, "f", b"2")
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


async def test_a_file_is_no_directory(blobs: Blobs, tmp_path: Path) -> None:
    await put(blobs, "f", b"1")
    await blobs.stage("t", stream(b"2"), "f/below")
    for write in (lambda: blobs.publish("t", "f/below"), lambda: blobs.make_directory("f/below")):
        with pytest.raises(ContentConflict):
            await write()
    await blobs.make_directory("d")
    with pytest.raises(ContentConflict):
        await blobs.publish("t", "d")
    assert await content(blobs, "f") == b"1"


async def test_nothing_is_put_through_a_link(blobs: Blobs, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    await blobs.stage("t", stream(b"2"), "link/f")
    for write in (
        lambda: blobs.publish("t", "link/f"),
        lambda: blobs.make_directory("link/d"),
        lambda: blobs.move("link", "link/x"),
    ):
        with pytest.raises((ContentUnreadable, ContentConflict)):
            await write()
    await blobs.remove("link/f", "r")
    assert os.listdir(outside) == [] and await blobs.stat("link/f") is None


async def test_a_file_that_shrinks_under_its_reader_ends_in_an_error(
    blobs: Blobs, tmp_path: Path
) -> None:
    await put(blobs, "f", b"x" * 3 * MIB)
    _, pieces = await blobs.read("f")
    assert len(await anext(pieces)) == MIB
    os.truncate(tmp_path / "f", MIB)
    with pytest.raises(ContentConflict):
        await anext(pieces)


class Meddling(Disk):
    """Something happens to the source when the copy is half done."""

    def __init__(self, meddle: Callable[[], object]) -> None:
        self._meddle = meddle
        self._writes = 0

    def write(self, fd: int, data: bytes) -> None:
        super().write(fd, data)
        self._writes += 1
        if self._writes == 3:
            self._meddle()


@pytest.mark.parametrize(
    ("meddle", "error"),
    [
        (lambda path: path.unlink(), ContentGone),
        (lambda path: os.truncate(path, MIB), ContentConflict),
        (lambda path: os.utime(path, (1, 1)), ContentConflict),
    ],
    ids=["vanishes", "shrinks", "changes"],
)
async def test_a_source_that_changes_while_copied_leaves_no_copy(
    tmp_path: Path, meddle: Callable[[Path], object], error: type[TristoreError]
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 5 * MIB)
    (tmp_path / ".tristore").mkdir()
    blobs = LocalBlobs(Beneath(tmp_path), disk=Meddling(lambda: meddle(source)))
    with pytest.raises(error):
        await blobs.stage_copy("t", "source", "to")
    await blobs.aclose()
    assert staged(tmp_path) == []


async def test_descriptors_are_given_back(blobs: Blobs, tmp_path: Path) -> None:
    await put(blobs, "d/f", b"x" * 3 * MIB)
    before = held(tmp_path)
    for _ in range(5):
        await blobs.read("d/f")
        _, pieces = await blobs.read("d/f")
        await anext(pieces)
        del pieces
        await blobs.checksum("d/f")
        with pytest.raises(ContentGone):
            await blobs.read("d/none")
    await until(lambda: asyncio.sleep(0, held(tmp_path) <= before))


def held(folder: Path) -> Counter[str]:
    """The open files below a folder; others come and go with the servers of the run."""
    found: Counter[str] = Counter()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # closed by a thread since
            found[os.readlink(link)] += 1
    return Counter({path: n for path, n in found.items() if path.startswith(str(folder))})


async def test_a_probe_leaves_a_working_folder(blobs: Blobs, tmp_path: Path) -> None:
    await blobs.probe()
    assert staged(tmp_path) == [] and await walked(blobs) == {}


async def test_a_folder_whose_own_part_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".tristore").symlink_to(tmp_path.parent)
    blobs = LocalBlobs(Beneath(tmp_path))
    with pytest.raises(MountRefused):
        await blobs.probe()
    await blobs.aclose()


async def test_a_walk_survives_what_vanishes_under_it(blobs: Blobs, tmp_path: Path) -> None:
    for n in range(1500):
        (tmp_path / f"{n:04}").mkdir()
    found: list[Entry] = []
    async for batch in blobs.walk():
        found += batch
        for n in range(1500):
            (tmp_path / f"{n:04}").rmdir() if (tmp_path / f"{n:04}").exists() else None
    assert 1000 <= len(found) <= 1500
