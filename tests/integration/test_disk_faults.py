"""A disk that is full, read-only or broken: a clear error, and the old version stays."""

import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tristore import failpoints
from tristore.errors import StorageFull, StorageRefused, TristoreError, Unavailable
from tristore.filestore.beneath import Beneath
from tristore.filestore.blobs import Blobs
from tristore.filestore.blobs_local import LocalBlobs
from tristore.filestore.disk import Disk

MIB = 1024 * 1024


@pytest.fixture
async def blobs(tmp_path: Path) -> AsyncIterator[Blobs]:
    mount = LocalBlobs(Beneath(tmp_path))
    await mount.probe()
    yield mount
    await mount.aclose()


async def put(blobs: Blobs, path: str, data: bytes) -> None:
    async def whole() -> AsyncIterator[bytes]:
        yield data

    there = await blobs.stat(path)
    await blobs.stage("put", whole(), path)
    await blobs.publish("put", path, replaces=there.fingerprint if there else None)


async def content(blobs: Blobs, path: str) -> bytes:
    _, pieces = await blobs.read(path)
    return b"".join([piece async for piece in pieces])


def staged(root: Path) -> list[str]:
    folders = [root / ".tristore" / area for area in ("staging", "trash")]
    return [name for folder in folders if folder.exists() for name in os.listdir(folder)]


class Failing(Disk):
    def __init__(self, call: str, code: int) -> None:
        self._call, self._code = call, code

    def _fail(self, call: str) -> None:
        if call == self._call:
            raise OSError(self._code, "/a/path/of/the/machine")

    def write(self, fd: int, data: bytes) -> None:
        super().write(fd, data[: len(data) // 2])
        self._fail("write")
        super().write(fd, data[len(data) // 2 :])

    def sync(self, fd: int) -> None:
        self._fail("sync")
        super().sync(fd)

    def replace(self, directory: int, name: str, target: int, target_name: str) -> None:
        self._fail("replace")
        super().replace(directory, name, target, target_name)


@pytest.mark.parametrize("call", ["write", "sync", "replace"])
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EFBIG, StorageFull),
        (errno.EROFS, StorageRefused),
        (errno.EACCES, StorageRefused),
        (errno.EIO, Unavailable),
        (errno.ESTALE, Unavailable),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else None,
)
async def test_a_disk_that_fails_leaves_the_old_version(
    tmp_path: Path, call: str, code: int, error: type[TristoreError]
) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / ".tristore").mkdir()
    blobs = LocalBlobs(Beneath(tmp_path), disk=Failing(call, code))
    with pytest.raises(error) as refused:
        await put(blobs, "f", b"new version")
    assert "machine" not in str(refused.value)
    assert await content(blobs, "f") == b"old"
    await blobs.discard("put")
    assert staged(tmp_path) == []
    await blobs.aclose()


@pytest.mark.parametrize("size", [10, 4 * MIB], ids=["small", "large"])
@pytest.mark.parametrize("place", ["write:enospc:1", "sync:enospc:1"])
async def test_a_full_disk_recovers_without_a_restart(
    blobs: Blobs, tmp_path: Path, place: str, size: int
) -> None:
    failpoints.arm(f"filestore.disk.{place}")
    try:
        with pytest.raises(StorageFull):
            await put(blobs, "f", b"x" * size)
    finally:
        failpoints.arm("")
    assert staged(tmp_path) == [] and await blobs.stat("f") is None
    await put(blobs, "f", b"x" * size)
    assert len(await content(blobs, "f")) == size


LIMITED = """
import asyncio, resource, sys
from tristore.errors import StorageFull
from tristore.filestore.beneath import Beneath
from tristore.filestore.blobs_local import LocalBlobs

async def stream(size):
    for _ in range(0, size, 65536):
        yield b"x" * 65536

async def put(blobs, size, replaces=None):
    await blobs.stage("t", stream(size), "f")
    return await blobs.publish("t", "f", replaces=replaces)

async def main():
    blobs = LocalBlobs(Beneath(sys.argv[1]))
    await blobs.probe()
    old = await put(blobs, 65536)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    for size in (1_048_576 - 65536, 4 * 1_048_576):
        try:
            await put(blobs, size + 65536, old)
        except StorageFull:
            print("full", (await blobs.stat("f")).fingerprint == old)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print((await put(blobs, 4 * 1_048_576, old)).size)
    await blobs.aclose()

asyncio.run(main())
"""


def test_a_file_beyond_the_limit_of_the_system_is_told_as_full(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == ["full True", "full True", str(4 * MIB), ""], done.stderr
    assert staged(tmp_path) == [] and (tmp_path / "f").stat().st_size == 4 * MIB
