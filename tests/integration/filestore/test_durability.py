"""What a broken disk leaves: nothing of what failed, and on the disk what recovery calls done."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.filestore import ME, check, on_disk, write
from tristore import errors
from tristore.filestore.disk import Disk
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore


class Syncs:
    """Every sync of a directory, by its path; one that is `broken` fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken: Path | None = None
        self.done: list[Path] = []
        real = Disk.sync

        def sync(disk: Disk, fd: int) -> None:
            place = Path(os.readlink(f"/proc/self/fd/{fd}"))
            if place == self.broken:
                raise OSError(errno.EIO, "broken")
            real(disk, fd)
            self.done.append(place)

        monkeypatch.setattr(Disk, "sync", sync)


@pytest.mark.parametrize("command", ["put", "move", "delete"])
async def test_recovery_makes_durable_what_it_finds_done(
    store: Filestore, mount: Mount, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Whoever did the rename was gone before the sync of its directory."""
    for path in ("a/f", "b/g"):
        await write(store, mount, path, b"old")
    syncs = Syncs(monkeypatch)
    syncs.broken = folder / "a" if command == "delete" else folder / "b"
    with pytest.raises(errors.OutcomeUnknown):
        if command == "put":
            await write(store, mount, "b/g", b"new")
        elif command == "move":
            await store.move(ME, mount.name, "a/f", "b/h")
        else:
            await store.delete(ME, mount.name, "a/f")
    left = {"put": folder / "b", "move": folder / "b", "delete": folder / "a"}[command]
    syncs.broken = None
    syncs.done.clear()
    assert await store.recover() == 1
    assert left in syncs.done
    if command == "move":
        assert syncs.done.index(left) < syncs.done.index(folder / "a")
    await check(store, mount, folder)


def full(name: str) -> Callable[..., None]:
    def call(*_: object) -> None:
        raise OSError(errno.ENOSPC, name)

    return call


@pytest.mark.parametrize("call", ["rename", "sync"])
async def test_a_full_disk_keeps_no_directory_of_what_it_refused(
    store: Filestore, mount: Mount, folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    await write(store, mount, "there/f", b"old")
    before = on_disk(folder)
    if call == "rename":
        monkeypatch.setattr(Disk, "rename", full(call))
        refused = [write(store, mount, "there/new/deep/f", b"x")]
        refused += [store.move(ME, mount.name, "there/f", "else/where/f")]  # type: ignore[list-item]
    else:
        # The first directory of three is there when its name cannot be written down.
        monkeypatch.setattr(Disk, "sync", full(call))
        refused = [store.create_directory(ME, mount.name, "new/deep/er")]  # type: ignore[list-item]
    for command in refused:
        with pytest.raises(errors.StorageFull):
            await command
    monkeypatch.undo()
    assert on_disk(folder) == before
    await check(store, mount, folder)
    await write(store, mount, "there/new/deep/f", b"with room again")
    await check(store, mount, folder)
