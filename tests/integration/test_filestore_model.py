"""Random commands against a plain dictionary: what the filestore holds is what the dictionary says,
on disk, in nodes, versions and sums, and in the events added up."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.support import filestore as support
from tests.support.api import own_database
from tests.support.filestore import ME, SMALL_CHUNKS
from tristore import errors
from tristore.filestore import paths
from tristore.filestore.model import Mount, Outcome
from tristore.filestore.store import Filestore
from tristore.merge_patch import merged

T = TypeVar("T")

# Few names, so that paths meet; one that sorts between a directory and what lies in it.
NAMES = st.sampled_from(["a", "b", "a-b", "ü"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
DATA = st.binary(max_size=20)
# Mostly a path that is there; a number picks it.
PLACES = st.integers(0, 99) | PATHS
VERSIONS = st.sampled_from([None, None, None, 0, 1, 2])
PATCHES = st.dictionaries(st.sampled_from("xyz"), st.none() | st.integers(0, 3), max_size=2)
REFUSALS = (errors.PathConflict, errors.NotFound, errors.VersionMismatch)


@dataclass(frozen=True)
class Thing:
    """What the model knows of a node; a directory has no data. `born` tells nodes apart."""

    born: int
    data: bytes | None
    version: int = 1
    metadata: dict[str, Any] = field(default_factory=dict)


class Refused(Exception):
    """The model says that the command must be refused."""


@dataclass
class Model:
    """A tree as a dictionary from path to thing."""

    things: dict[str, Thing] = field(default_factory=dict)
    born: int = 0

    def new(self, data: bytes | None, **fields: Any) -> Thing:
        self.born += 1
        return Thing(self.born, data, **fields)

    def make_room(self, path: str) -> None:
        for folder in paths.parents(path):
            if self.things.setdefault(folder, self.new(None)).data is not None:
                raise Refused(folder)

    def room_for(self, path: str) -> None:
        """That it could be made, before anything is."""
        over = (self.things.get(folder) for folder in paths.parents(path))
        if any(thing is not None and thing.data is not None for thing in over):
            raise Refused(path)

    def at(self, path: str, version: int | None = None) -> Thing:
        thing = self.things.get(path)
        if thing is None or version not in (None, thing.version):
            raise Refused(path)
        return thing

    def under(self, path: str) -> list[str]:
        return [other for other in sorted(self.things) if paths.within(other, path)]

    def put(self, path: str, data: bytes, version: int | None) -> None:
        self.room_for(path)
        old = self.things.get(path)
        if old is None and version is not None:
            raise Refused(path)
        if old is not None and (old.data is None or version not in (None, old.version)):
            raise Refused(path)
        self.make_room(path)
        if old is None:
            self.things[path] = self.new(data)
        else:
            self.things[path] = replace(old, data=data, version=old.version + 1)

    def make_directory(self, path: str) -> None:
        self.room_for(path)
        if path in self.things:
            raise Refused(path)
        self.make_room(path)
        self.things[path] = self.new(None)

    def transfer(self, path: str, target: str, version: int | None, *, keep: bool) -> None:
        self.at(path, version)
        self.room_for(target)
        if paths.within(target, path) or target in self.things:
            raise Refused(target)
        self.make_room(target)
        for old in self.under(path):
            thing = self.things[old] if keep else self.things.pop(old)
            moved = replace(thing, version=thing.version + 1)
            made = self.new(thing.data, metadata=thing.metadata) if keep else moved
            self.things[paths.rebased(old, path, target)] = made

    def delete(self, path: str, version: int | None, recursive: bool) -> None:
        self.at(path, version)
        gone = self.under(path)
        if len(gone) > 1 and not recursive:
            raise Refused(path)
        for old in gone:
            del self.things[old]

    def patch(self, path: str, patch: dict[str, Any], version: int | None) -> None:
        old = self.at(path, version)
        kept = merged(old.metadata, patch)
        self.things[path] = replace(old, metadata=kept, version=old.version + 1)


class Platform:
    """One filestore for all runs; each has a mount of its own."""

    def __init__(self, database_url: str, folder: Path) -> None:
        self.folder = folder
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        made = support.settings_for(database_url, folder / "data", SMALL_CHUNKS)
        opening = self._stack.enter_async_context(support.own_filestore(made))
        self.store: Filestore = self.run(opening)

    def run(self, work: Awaitable[T]) -> T:
        async def wait() -> T:
            return await work

        return self._runner.run(wait())

    def close(self) -> None:
        self.run(self._stack.aclose())
        self._runner.close()


class FilestoreMachine(RuleBasedStateMachine):
    """`attempt` does one command in both worlds; a subclass or another rule may add more, such as
    changes from outside, and teach the model what they mean."""

    platform: ClassVar[Platform]
    mount: Mount
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.ids: dict[int, int] = {}

    @initialize()
    def begin(self) -> None:
        self._temporary = TemporaryDirectory(dir=self.platform.folder)
        self.folder = Path(self._temporary.name)
        self.mount = self.run(support.new_mount(self.store, self.folder))

    def teardown(self) -> None:
        if hasattr(self, "_temporary"):
            self._temporary.cleanup()

    @property
    def store(self) -> Filestore:
        return self.platform.store

    def run(self, work: Awaitable[T]) -> T:
        return self.platform.run(work)

    def attempt(self, modelled: Callable[[Model], None], command: Awaitable[Outcome]) -> None:
        trial = Model(dict(self.model.things), self.model.born)
        try:
            modelled(trial)
        except Refused:
            with pytest.raises(REFUSALS):
                self.run(command)
            return
        outcome = self.run(command)
        assert not outcome.under_way
        self.model = trial

    def version(self, path: str, given: int | None) -> int | None:
        """0 means the right one; anything else is taken as it is."""
        thing = self.model.things.get(path)
        return thing.version if given == 0 and thing is not None else given

    def path(self, place: int | str) -> str:
        there = sorted(self.model.things)
        if isinstance(place, str) or not there:
            return str(place)
        return there[place % len(there)]

    @rule(place=PLACES, data=DATA, version=VERSIONS)
    def put(self, place: int | str, data: bytes, version: int | None) -> None:
        path = self.path(place)
        wanted = self.version(path, version)
        content = support.content(data)
        command = self.store.put(ME, self.mount.name, path, content, if_match=wanted)
        self.attempt(lambda model: model.put(path, data, wanted), command)

    @rule(path=PATHS)
    def make_directory(self, path: str) -> None:
        command = self.store.create_directory(ME, self.mount.name, path)
        self.attempt(lambda model: model.make_directory(path), command)

    @rule(place=PLACES, to=PATHS, version=VERSIONS, keep=st.booleans())
    def transfer(self, place: int | str, to: str, version: int | None, keep: bool) -> None:
        path = self.path(place)
        wanted = self.version(path, version)
        method = self.store.copy if keep else self.store.move
        command = method(ME, self.mount.name, path, to, if_match=wanted)
        self.attempt(lambda model: model.transfer(path, to, wanted, keep=keep), command)

    @rule(place=PLACES, version=VERSIONS, recursive=st.booleans())
    def delete(self, place: int | str, version: int | None, recursive: bool) -> None:
        path = self.path(place)
        wanted = self.version(path, version)
        command = self.store.delete(ME, self.mount.name, path, if_match=wanted, recursive=recursive)
        self.attempt(lambda model: model.delete(path, wanted, recursive), command)

    @rule(place=PLACES, patch=PATCHES, version=VERSIONS)
    def update_metadata(self, place: int | str, patch: dict[str, Any], version: int | None) -> None:
        path = self.path(place)
        wanted = self.version(path, version)
        command = self.store.update_metadata(ME, self.mount.name, path, patch, if_match=wanted)
        self.attempt(lambda model: model.patch(path, patch, wanted), command)

    @invariant()
    def everything_agrees(self) -> None:
        if not hasattr(self, "mount"):
            return
        nodes = self.run(support.check(self.store, self.mount, self.folder))
        things = self.model.things
        assert support.on_disk(self.folder) == {path: t.data for path, t in things.items()}
        seen = {path: (n.version, n.metadata) for path, n in nodes.items()}
        assert seen == {path: (t.version, t.metadata) for path, t in things.items()}
        # A node keeps its id as long as it lives, and a new one at its path gets another.
        for path, thing in things.items():
            assert self.ids.setdefault(thing.born, nodes[path].id) == nodes[path].id
        assert len(set(self.ids.values())) == len(self.ids)


@pytest.fixture(scope="module")
def platform(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with own_database(server_url) as url:
        made = Platform(url, tmp_path_factory.mktemp("model"))
        yield made
        made.close()


def test_commands_do_what_a_plain_tree_would(platform: Platform) -> None:
    FilestoreMachine.platform = platform
    run_state_machine_as_test(
        FilestoreMachine,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
