"""kill -9 at every step of every filestore command: what is visible is old or new, and journal,
nodes, disk, sums and events agree; also if the process that recovers is killed at the same step."""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import tristore.filestore
from tests.support import filestore as support
from tests.support.api import own_database
from tests.support.filestore import SMALL_CHUNKS, check, new_mount, write
from tests.support.filestore_child import Errand, killed, sent
from tests.support.waiting import until
from tristore.filestore import housekeeping
from tristore.filestore.model import Mount, Node
from tristore.filestore.store import Filestore

COMMANDS = ("put", "directory", "move", "copy", "delete", "metadata")
_FAILPOINT = re.compile(rf'"filestore\.((?:{"|".join(COMMANDS)})\.\w+)"')
# Steps that a command may come past more than once.
_REPEATED = ("after_chunk", "after_file")
# More of them than any command here has.
_MOST = 20

Args = Callable[[str, str], tuple[Any, ...]]


@dataclass(frozen=True)
class Scenario:
    """A method of the filestore; its arguments are made from the names of two mounts."""

    name: str
    command: str
    method: str
    args: Args


SCENARIOS = [
    Scenario("new file", "put", "put", lambda m, _: (m, "new/deep/f", b"n" * 70_000)),
    Scenario("overwrite", "put", "put", lambda m, _: (m, "in/top", b"other")),
    Scenario("directory", "directory", "create_directory", lambda m, _: (m, "new/deep")),
    Scenario("file", "move", "move", lambda m, _: (m, "in/top", "new/top")),
    Scenario("tree", "move", "move", lambda m, _: (m, "in", "new/in")),
    Scenario("file away", "move", "move", lambda m, o: (m, "in/top", "new/top", o)),
    Scenario("tree away", "move", "move", lambda m, o: (m, "in", "new/in", o)),
    Scenario("file", "copy", "copy", lambda m, _: (m, "in/top", "new/top")),
    Scenario("tree", "copy", "copy", lambda m, _: (m, "in", "new/in")),
    Scenario("tree away", "copy", "copy", lambda m, o: (m, "in", "new/in", o)),
    Scenario("file", "delete", "delete", lambda m, _: (m, "in/top")),
    Scenario("tree", "delete", "delete", lambda m, _: (m, "in")),
    Scenario("patch", "metadata", "update_metadata", lambda m, _: (m, "in/top", {"a": 1})),
]


_AFTER: dict[Scenario, list[dict[str, Any]]] = {}


def failpoints() -> list[str]:
    """As the code has them: a new step is killed here from its first day."""
    folder = Path(str(tristore.filestore.__path__[0]))
    found = (_FAILPOINT.findall(path.read_text("utf-8")) for path in folder.glob("*.py"))
    return sorted({name for names in found for name in names})


@dataclass(frozen=True)
class World:
    """Two mounts, the first with a small tree."""

    store: Filestore
    mounts: list[Mount]
    folders: list[Path]

    @classmethod
    async def made(cls, store: Filestore, folder: Path) -> "World":
        folders = [folder / "a", folder / "b"]
        world = cls(store, [await new_mount(store, one) for one in folders], folders)
        for path in ("in/deep/1", "in/deep/2", "in/deep/3", "in/top", "rest"):
            await write(store, world.mounts[0], path, path.encode())
        return world

    async def checked(self) -> list[dict[str, Any]]:
        """What both mounts hold, once everything agrees."""
        both = zip(self.mounts, self.folders, strict=True)
        trees = [await check(self.store, mount, folder) for mount, folder in both]
        return [{path: _seen(node) for path, node in tree.items()} for tree in trees]

    async def last_entry(self) -> dict[str, Any]:
        query = """SELECT id, state FROM filestore.journal_entries
            WHERE mount_id = %s ORDER BY id DESC LIMIT 1"""
        return (await support.ask(self.store, query, self.mounts[0].id))[0]


def _seen(node: Node) -> tuple[Any, ...]:
    return node.kind, node.version, node.size_bytes, node.checksum, str(node.metadata)


@pytest.fixture(scope="module")
def database(server_url: str) -> Iterator[str]:
    with own_database(server_url) as url:
        yield url


def test_every_step_is_known_to_somebody() -> None:
    found = failpoints()
    assert {name.split(".")[0] for name in found} == set(COMMANDS)
    for command in COMMANDS:
        assert {f"{command}.after_intent", f"{command}.after_commit"} <= set(found)


@pytest.mark.parametrize("name", failpoints())
async def test_a_kill_leaves_old_or_new(name: str, database: str, tmp_path: Path) -> None:
    settings = support.settings_for(database, tmp_path / "data", SMALL_CHUNKS)
    command = name.split(".")[0]
    kills = 0
    async with support.own_filestore(settings) as store:
        for number, scenario in enumerate(s for s in SCENARIOS if s.command == command):
            kills += await _play(store, scenario, name, tmp_path / str(number))
    assert kills > 0, f"no scenario comes past {name}"


async def _play(store: Filestore, scenario: Scenario, name: str, folder: Path) -> int:
    """Kills the command at the first, second, … pass of the failpoint, until it gets through."""
    for nth in range(1, _MOST):
        world = await World.made(store, folder / str(nth))
        before, entry = await world.checked(), (await world.last_entry())["id"]
        if not _send(world, scenario, f"filestore.{name}:exit9:{nth}"):
            _AFTER[scenario] = await world.checked()
            return nth - 1
        _recover_and_die(store, f"filestore.{name}:exit9:1")
        await store.recover()
        last = await world.last_entry()
        if last["id"] == entry:
            assert name.endswith("after_stage"), "it began and left no trace"
            assert await world.checked() == before
        else:
            # Whatever had begun is finished: all that it needs lies ready.
            assert last["state"] == "completed"
            assert await world.checked() == await _after(store, scenario, folder)
        await _swept(world)
        if not name.endswith(_REPEATED):
            return nth
    raise AssertionError("the command never got through")


async def _after(store: Filestore, scenario: Scenario, folder: Path) -> list[dict[str, Any]]:
    """What the command leaves where nobody stops it."""
    if scenario not in _AFTER:
        world = await World.made(store, folder / "after")
        assert not _send(world, scenario, "")
        _AFTER[scenario] = await world.checked()
    return _AFTER[scenario]


def _send(world: World, scenario: Scenario, failpoint: str) -> bool:
    args = scenario.args(*(mount.name for mount in world.mounts))
    return killed(_errand(world.store, scenario.method, args, failpoint))


def _recover_and_die(store: Filestore, failpoint: str) -> None:
    killed(_errand(store, "recover", (), failpoint))


def _errand(store: Filestore, method: str, args: tuple[Any, ...], failpoint: str) -> Errand:
    data_dir = store._settings.data_dir
    return Errand(str(store.bench.pool.conninfo), data_dir, method, args, failpoint)


async def _swept(world: World) -> None:
    """Nothing that a crash left behind stays for ever."""
    world.store.bench.settings = SMALL_CHUNKS.model_copy(update={"staging_keep_seconds": -1})
    await housekeeping.sweep(world.store)
    world.store.bench.settings = SMALL_CHUNKS
    for folder in world.folders:
        assert [path for path in (folder / ".tristore").rglob("*") if path.is_file()] == []


STOPPED = [
    ("put", ("in/top", b"of the zombie"), "after_intent"),
    ("delete", ("in/top",), "after_intent"),
    ("delete", ("in",), "after_intent"),
    ("move", ("in", "out"), "after_intent"),
    ("copy", ("in/top", "copy"), "after_intent"),
    ("put", ("in/top", b"of the zombie"), "after_publish"),
]


@pytest.mark.parametrize(("method", "args", "step"), STOPPED)
async def test_a_process_taken_for_dead_spoils_nothing(
    method: str, args: tuple[Any, ...], step: str, database: str, tmp_path: Path
) -> None:
    """It is stopped, another finishes its command and goes on, and then it wakes up."""
    settings = support.settings_for(database, tmp_path / "data", SMALL_CHUNKS)
    async with support.own_filestore(settings) as store:
        world = await World.made(store, tmp_path / "world")
        mount = world.mounts[0]
        failpoint = f"filestore.{method}.{step}:stop:1"
        zombie = sent(_errand(store, method, (mount.name, *args), failpoint))
        assert zombie.pid is not None
        await until(lambda: _is_stopped(zombie.pid))
        await _lapse(store)
        assert await store.recover() == 1
        for path in ("in/top", "in/deep/1", "copy"):
            await write(store, mount, path, b"newer than all of it")
        before = await world.checked()
        os.kill(zombie.pid, signal.SIGCONT)
        await asyncio.to_thread(zombie.join, 60)
        assert zombie.exitcode == 1, "its caller must hear that it cannot tell"
        assert await world.checked() == before


async def _is_stopped(pid: int | None) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


async def _lapse(store: Filestore) -> None:
    """As if the process had been stopped for longer than its lease."""
    query = "UPDATE filestore.owners SET lease_until = '-infinity' WHERE id <> %s RETURNING id"
    assert await support.ask(store, query, store.bench.owner.id)


async def test_a_process_that_starts_takes_up_what_the_dead_one_left(
    database: str, tmp_path: Path
) -> None:
    settings = support.settings_for(database, tmp_path / "data", SMALL_CHUNKS)
    async with support.own_filestore(settings) as store:
        world = await World.made(store, tmp_path / "world")
        args = (world.mounts[0].name, "in", "out")
        assert killed(_errand(store, "move", args, "filestore.move.after_chunk:exit9:1"))
        async with support.own_filestore(settings, recovering=True):
            await until(lambda: _completed(world))
        assert "out/deep/3" in (await world.checked())[0]


async def _completed(world: World) -> bool:
    return (await world.last_entry())["state"] == "completed"
