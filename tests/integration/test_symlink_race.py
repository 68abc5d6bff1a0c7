"""Whoever may write into a mounted folder swaps directories and files for links to the outside,
as fast as they can, and gets nothing from there, puts nothing there and removes nothing there."""

import ctypes
import multiprocessing
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from tristore.errors import ContentConflict, ContentGone, ContentUnreadable
from tristore.filestore import beneath
from tristore.filestore.beneath import Beneath
from tristore.filestore.blobs import Blobs
from tristore.filestore.blobs_local import LocalBlobs

SWAPS = 10_000
SECRET, INSIDE = b"secret of the outside", b"inside"
REFUSALS = (ContentConflict, ContentGone, ContentUnreadable)


def swap(root: str, swaps: "Synchronized[int]", stop: Event) -> None:
    """Each pair of names changes places in one step, so there is always something there."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    here = os.open(root, os.O_RDONLY)
    while not stop.is_set():
        for left, right in ((b"folder", b"folder-link"), (b"file", b"file-link")):
            assert exchange(here, left, here, right, 2) == 0, os.strerror(ctypes.get_errno())
            swaps.value += 1


@contextmanager
def swapping(root: Path) -> Iterator["Synchronized[int]"]:
    spawn = multiprocessing.get_context("spawn")
    swaps: Synchronized[int] = spawn.Value("q", 0)
    stop = spawn.Event()
    process = spawn.Process(target=swap, args=(str(root), swaps, stop), daemon=True)
    process.start()
    try:
        wait_until(lambda: swaps.value > 0)
        yield swaps
    finally:
        stop.set()
        process.join(60)
        process.close()


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, content in ((root / "folder", INSIDE), (outside, SECRET)):
        folder.mkdir(parents=True)
        (folder / "f").write_bytes(content)
        (folder / "below").mkdir()
        (folder / "below/f").write_bytes(content)
        for n in range(500):
            (folder / f"victim{n}").write_bytes(content)
    (root / "folder-link").symlink_to(outside)
    (root / "file").write_bytes(INSIDE)
    (root / "file-link").symlink_to(outside / "f")
    return root, outside


def everything(folder: Path) -> dict[str, bytes | None]:
    found = sorted(folder.rglob("*"))
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in found}


async def one(data: bytes) -> AsyncIterator[bytes]:
    yield data


class Tries:
    """What a client may do, over and over, while the ground moves."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    async def go(self, name: str, n: int) -> None:
        try:
            await getattr(self, name)(n)
            self.done[name] += 1
        except REFUSALS:
            self.refused[name] += 1

    async def read(self, n: int) -> None:
        _, pieces = await self._blobs.read(["folder/f", "folder/below/f", "file"][n % 3])
        assert b"".join([piece async for piece in pieces]) == INSIDE

    async def copy(self, n: int) -> None:
        staged = await self._blobs.stage_copy(f"copy{n}", "folder/f", "copy")
        await self._blobs.discard(f"copy{n}")
        assert staged.size == len(INSIDE)

    async def stat(self, n: int) -> None:
        found = await self._blobs.stat(["folder/f", "file"][n % 2])
        if found is None or found.kind == "other":
            raise ContentGone("a link stood there")
        assert found.fingerprint.size == len(INSIDE)

    async def put(self, n: int) -> None:
        await self._blobs.stage(f"put{n}", one(b"new"), f"folder/new/{n}")
        try:
            await self._blobs.publish(f"put{n}", f"folder/new/{n}")
        finally:
            await self._blobs.discard(f"put{n}")

    async def remove(self, n: int) -> None:
        await self._blobs.remove(f"folder/victim{n % 500}", f"remove{n}")

    async def walk(self, n: int) -> None:
        async for batch in self._blobs.walk():
            assert not any(entry.fingerprint.size == len(SECRET) for entry in batch)


@pytest.mark.parametrize("how", ["kernel", "walking"])
async def test_swapped_links_never_lead_outside(
    how: str, trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "walking":
        monkeypatch.setattr(beneath, "kernel_resolves", lambda: False)
    root, outside = trees
    before = everything(outside)
    blobs = LocalBlobs(Beneath(root))
    await blobs.probe()
    tries, fooled = Tries(blobs), 0
    plan = ["read"] * 2400 + ["stat"] * 600 + ["put"] * 250 + ["remove"] * 250
    plan += ["copy"] * 100 + ["walk"] * 10
    random.Random(7).shuffle(plan)
    with swapping(root) as swaps:
        for n, name in enumerate(plan):
            await tries.go(name, n)
            fooled += n % 10 == 0 and (root / "folder/f").read_bytes() == SECRET
        wait_until(lambda: swaps.value >= SWAPS)
    await blobs.aclose()
    assert everything(outside) == before
    # The links were really there, and really hit: plain opening fell for them.
    assert fooled > 0
    for name in ("read", "stat", "put"):
        assert tries.done[name] > 0 and tries.refused[name] > 0, (name, tries.done, tries.refused)
    real = next(p for p in (root / "folder", root / "folder-link") if not p.is_symlink())
    assert len(os.listdir(real / "new")) == tries.done["put"]
