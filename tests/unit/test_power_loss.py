"""What was acknowledged before the power went is there afterwards, whole."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tristore.errors import TristoreError
from tristore.filestore.beneath import Beneath
from tristore.filestore.disk import Disk
from tristore.filestore.folder import Folder

SEEDS = 500
FOLDERS = ["a", "b", "a/a", "a/b", "b/a", "b/b"]


@dataclass
class File:
    now: bytes = b""
    synced: bytes = b""

    def survivor(self, chance: random.Random) -> bytes:
        """What was synced, and any part of what came later."""
        return self.synced + self.now[len(self.synced) :][: chance.randint(0, len(self.now))]


@dataclass
class Directory:
    """Its names as they were synced, and each change since, which may or may not have reached the
    disk, in any order but for changes of one name."""

    synced: "dict[str, Thing]" = field(default_factory=dict)
    since: "list[tuple[str, Thing | None]]" = field(default_factory=list)

    def set(self, name: str, thing: "Thing | None") -> None:
        self.since.append((name, thing))

    def sync(self) -> None:
        self.synced = self.after(lambda: True)
        self.since = []

    def after(self, reached: Callable[[], bool]) -> "dict[str, Thing]":
        names = dict(self.synced)
        for name, thing in self.since:
            if not reached():
                continue
            if thing is None:
                names.pop(name, None)
            else:
                names[name] = thing
        return names


Thing = File | Directory


class ForgetfulDisk(Disk):
    """Does everything for real and keeps the books of what a power cut would leave.

    `before_sync` is called when a directory has been made and not yet synced; another command may
    use it then. `careless` forgets the syncs of directories, as code without them would.
    """

    def __init__(self, root: int, *, careless: bool = False) -> None:
        self.root = Directory()
        self._things: dict[int, Thing] = {os.fstat(root).st_ino: self.root}
        self._careless = careless
        self.before_sync: Callable[[], None] = lambda: None

    def create(self, directory: int, name: str) -> int:
        fd = super().create(directory, name)
        self._things[os.fstat(fd).st_ino] = made = File()
        self._directory(directory).set(name, made)
        return fd

    def write(self, fd: int, data: bytes) -> None:
        super().write(fd, data)
        self._file(fd).now += data

    def sync(self, fd: int) -> None:
        thing = self._things[os.fstat(fd).st_ino]
        if isinstance(thing, File):
            thing.synced = thing.now
        elif not self._careless:
            thing.sync()

    def make_directory(self, directory: int, name: str, mode: int) -> None:
        super().make_directory(directory, name, mode)
        self.learn(directory, name)
        if mode != 0o700:  # not the folder of the filestore itself
            self.before_sync()

    def learn(self, directory: int, name: str) -> None:
        made = Directory()
        self._things[os.stat(name, dir_fd=directory).st_ino] = made
        self._directory(directory).set(name, made)

    def replace(self, directory: int, name: str, target: int, target_name: str) -> None:
        super().replace(directory, name, target, target_name)
        self._renamed(directory, name, target, target_name)

    def rename(self, directory: int, name: str, target: int, target_name: str) -> None:
        super().rename(directory, name, target, target_name)
        self._renamed(directory, name, target, target_name)

    def remove(self, directory: int, name: str) -> None:
        super().remove(directory, name)
        self._directory(directory).set(name, None)

    def _renamed(self, directory: int, name: str, target: int, target_name: str) -> None:
        """One rename, two directories: each may reach the disk without the other."""
        moved = self._things[os.stat(target_name, dir_fd=target).st_ino]
        self._directory(directory).set(name, None)
        self._directory(target).set(target_name, moved)

    def _directory(self, fd: int) -> Directory:
        found = self._things[os.fstat(fd).st_ino]
        assert isinstance(found, Directory)
        return found

    def _file(self, fd: int) -> File:
        found = self._things[os.fstat(fd).st_ino]
        assert isinstance(found, File)
        return found

    def power_cut(self, chance: random.Random) -> dict[str, bytes]:
        """The files that are left, by their paths."""
        return dict(self._left(self.root, "", chance))

    def _left(
        self, directory: Directory, path: str, chance: random.Random
    ) -> Iterator[tuple[str, bytes]]:
        for name, thing in directory.after(lambda: chance.random() < 0.5).items():
            if isinstance(thing, File):
                yield path + name, thing.survivor(chance)
            else:
                yield from self._left(thing, f"{path}{name}/", chance)


class PowerCut(Exception):
    pass


class Session:
    """A few commands, and what each path may hold once one of them was acknowledged."""

    def __init__(self, folder: Folder, disk: ForgetfulDisk, root: Path, seed: int) -> None:
        self._folder, self._disk, self._root = folder, disk, root
        self._chance = random.Random(seed)
        self._tokens = iter(range(1_000_000))
        self.promised: dict[str, bytes | None] = {}
        disk.before_sync = self._somebody_else

    def play(self) -> None:
        with suppress(PowerCut):
            self.put("f")
            self._commands()

    def _commands(self) -> None:
        for _ in range(6):
            act = self._chance.choice([self.put, self.put, self.put, self.move, self.remove])
            with suppress(TristoreError, OSError):
                act()
            if self._chance.random() < 0.2:
                self._stranger()

    def put(self, path: str | None = None) -> None:
        path = path or self._path()
        data = self._chance.randbytes(self._chance.randint(1, 40))
        token = f"t{next(self._tokens)}"
        self._folder.staging.whole(token, [data[:7], data[7:]])
        there = self._folder.stat(path)
        self._folder.publish(token, path, there.fingerprint if there else None)
        self.promised[path] = data

    def move(self) -> None:
        source, target = self._chance.choice(sorted(self.promised)), self._path()
        self._folder.move(source, target)
        self.promised[target] = self.promised[source]
        self.promised[source] = None

    def remove(self) -> None:
        path = self._chance.choice(sorted(self.promised))
        self._folder.remove(path, f"t{next(self._tokens)}", None)
        self.promised[path] = None

    def _path(self) -> str:
        depth = self._chance.randint(0, 3)
        return "/".join([*(self._chance.choice("ab") for _ in range(depth)), "f"])

    def _somebody_else(self) -> None:
        """Another command comes by while a directory is new."""
        self._disk.before_sync = lambda: None
        with suppress(TristoreError, OSError):
            there = [folder for folder in FOLDERS if (self._root / folder).is_dir()]
            self.put(f"{self._chance.choice(there)}/f")
        if self._chance.random() < 0.5:
            raise PowerCut
        self._disk.before_sync = self._somebody_else

    def _stranger(self) -> None:
        """Makes a directory with no thought of power cuts."""
        name = self._chance.choice("abcd")
        with suppress(FileExistsError):
            (self._root / name).mkdir()
            fd = os.open(self._root, os.O_RDONLY)
            self._disk.learn(fd, name)
            os.close(fd)


def lost(root: Path, seed: int, *, careless: bool = False) -> list[str]:
    """The paths that do not hold what was promised."""
    root.mkdir()
    beneath = Beneath(root)
    disk = ForgetfulDisk(beneath.root, careless=careless)
    folder = Folder(beneath, disk)
    folder.staging.found()
    session = Session(folder, disk, root, seed)
    session.play()
    beneath.close()
    left = disk.power_cut(random.Random(seed))
    assert session.promised, "nothing was acknowledged"
    return [path for path, data in session.promised.items() if left.get(path) != data]


@pytest.mark.parametrize("part", range(5))
def test_what_was_acknowledged_survives_a_power_cut(tmp_path: Path, part: int) -> None:
    for seed in range(part, SEEDS, 5):
        assert lost(tmp_path / str(seed), seed) == [], f"seed {seed}"


def test_a_forgotten_sync_of_a_directory_would_be_noticed(tmp_path: Path) -> None:
    assert any(lost(tmp_path / str(seed), seed, careless=True) for seed in range(20))


@pytest.mark.parametrize("victim", ["file", "parent"])
def test_every_single_sync_is_needed(
    tmp_path: Path, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the sync of the content, or of the directories above, acknowledged files are lost."""
    real = ForgetfulDisk.sync

    def without(disk: ForgetfulDisk, fd: int) -> None:
        thing = disk._things[os.fstat(fd).st_ino]
        if (isinstance(thing, File) and victim == "file") or thing is disk.root:
            return
        real(disk, fd)

    monkeypatch.setattr(ForgetfulDisk, "sync", without)
    assert any(lost(tmp_path / str(seed), seed) for seed in range(50))
