"""A tree of files on two mounts, commands on it by chance, and what each of them must leave."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.stage import BUS, Stage
from tests.support.filestore import (
    ME,
    SMALL_CHUNKS,
    ask,
    check,
    content,
    new_mount,
    on_disk,
    own_filestore,
    settings_for,
    write,
)
from tests.support.publishing import digest
from tristore.events import strictjson
from tristore.filestore import housekeeping, paths
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore

Tree = dict[str, bytes | None]
_SIZES = (0, 100, 70_000)
# Several chunks for a command that takes all of it.
_GROWN = ("1", "2", "deep/3", "deep/4")


@dataclass(frozen=True)
class Command:
    """A method of the filestore, and the trees of both mounts once it is done. `patch` is what
    the metadata of its path must show then."""

    method: str
    args: tuple[Any, ...]
    after: list[Tree]
    patch: dict[str, int] = field(default_factory=dict)

    async def run(self, store: Filestore) -> None:
        args = [content(arg) if isinstance(arg, bytes) else arg for arg in self.args]
        await getattr(store, self.method)(ME, *args)


@dataclass(frozen=True)
class FileTree:
    stage: Stage
    store: Filestore
    mounts: list[Mount]
    folders: list[Path]
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def trees(self) -> list[Tree]:
        return [on_disk(folder) for folder in self.folders]

    async def grow(self) -> None:
        """So that there is always something for a command to take."""
        number = next(self._numbers)
        for name in _GROWN:
            data = self.stage.chance.randbytes(self.stage.chance.choice(_SIZES))
            await write(self.store, self.mounts[0], f"g{number}/{name}", data)

    def command(self, name: str) -> Command:
        """`put`, `directory`, `move`, `copy`, `delete` or `metadata`, of anything in the tree."""
        choose = {"move": self._transfer, "copy": self._transfer}.get(name)
        return choose(name) if choose else getattr(self, f"_{name}")()

    def _put(self) -> Command:
        here, there = self.trees()
        files = [path for path, data in here.items() if data is not None]
        path = self._any([self._any(files), self._unused(here)])
        data = self.stage.chance.randbytes(self._any(_SIZES))
        return Command("put", (self.mounts[0].name, path, data), [_with(here, path, data), there])

    def _directory(self) -> Command:
        here, there = self.trees()
        path = self._unused(here)
        args = (self.mounts[0].name, path)
        return Command("create_directory", args, [_with(here, path, None), there])

    def _transfer(self, name: str) -> Command:
        trees = self.trees()
        path, to = self._any(sorted(trees[0])), self._any((0, 1))
        outside = {at: data for at, data in trees[to].items() if not paths.within(at, path)}
        target = self._unused(outside if to == 0 else trees[to])
        taken = {at: data for at, data in trees[0].items() if paths.within(at, path)}
        if name == "move":
            trees[0] = {at: data for at, data in trees[0].items() if at not in taken}
        for at, data in taken.items():
            trees[to] = _with(trees[to], paths.rebased(at, path, target), data)
        return Command(name, (self.mounts[0].name, path, target, self.mounts[to].name), trees)

    def _delete(self) -> Command:
        here, there = self.trees()
        path = self._any(sorted(here))
        left = {at: data for at, data in here.items() if not paths.within(at, path)}
        return Command("delete", (self.mounts[0].name, path), [left, there])

    def _metadata(self) -> Command:
        trees = self.trees()
        patch = {"number": next(self._numbers)}
        args = (self.mounts[0].name, self._any(sorted(trees[0])), patch)
        return Command("update_metadata", args, trees, patch)

    def _any(self, items: Any) -> Any:
        return self.stage.chance.choice(items)

    def _unused(self, tree: Tree) -> str:
        """A path with nothing at it, some directories deep, new ones or old."""
        name = f"n{next(self._numbers)}"
        folders = [f"{path}/" for path, data in sorted(tree.items()) if data is None]
        return str(self._any(["", f"{name}/deep/", *folders[:2]])) + name

    async def last_entry(self) -> tuple[int, str]:
        query = "SELECT id, state FROM filestore.journal_entries ORDER BY id DESC LIMIT 1"
        (row,) = await ask(self.store, query)
        return row["id"], row["state"]

    async def check_done(self, command: Command) -> None:
        assert self.trees() == command.after
        if command.patch:
            node = await self.store.by_path(ME, command.args[0], command.args[1])
            assert command.patch.items() <= node.metadata.items()

    async def check(self) -> None:
        """Disk, nodes, versions, sums, journal and events of both mounts tell one story."""
        for mount, folder in zip(self.mounts, self.folders, strict=True):
            await check(self.store, mount, folder)

    async def check_swept(self) -> None:
        """Nothing that a fault left behind stays for ever."""
        self.store.bench.settings = SMALL_CHUNKS.model_copy(update={"staging_keep_seconds": -1})
        await housekeeping.sweep(self.store)
        self.store.bench.settings = SMALL_CHUNKS
        for folder in self.folders:
            left = [path for path in (folder / ".tristore").rglob("*") if path.is_file()]
            assert left == []


@asynccontextmanager
async def own_store(stage: Stage) -> AsyncIterator[Filestore]:
    settings = settings_for(stage.url, stage.folder / "data", SMALL_CHUNKS)
    async with own_filestore(settings) as store:
        yield store


@asynccontextmanager
async def planted(stage: Stage) -> AsyncIterator[FileTree]:
    folders = [stage.folder / "a", stage.folder / "b"]
    async with own_store(stage) as store:
        tree = FileTree(stage, store, [await new_mount(store, one) for one in folders], folders)
        await tree.grow()
        yield tree


def told(stage: Stage) -> int:
    """Lets the bus have what the filestore committed: the log must hold each event of the outbox
    once, and nothing else. Says how many they are."""
    made = stage.rows("SELECT event_id, envelope FROM bus.outbox")
    with stage.part("work", BUS):
        stage.settle()
    payloads = {row["event_id"]: strictjson.loads(row["envelope"].encode()) for row in made}
    stage.check({key: digest(event["payload"]) for key, event in payloads.items()})
    return len(made)


def _with(tree: Tree, path: str, data: bytes | None) -> Tree:
    return {**dict.fromkeys(paths.parents(path)), **tree, path: data}
