"""Random commands and changes behind the filestore's back, in any order: once settled, the tree is
what lies on disk, and nodes, sums, versions and events add up to it."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from tests.integration.test_filestore_model import (
    DATA,
    NAMES,
    PATHS,
    PLACES,
    REFUSALS,
    FilestoreMachine,
    Model,
    Platform,
    Thing,
)
from tests.support import filestore as support
from tests.support.api import own_database
from tests.support.upkeep import drifting
from tristore import errors
from tristore.filestore import jobs
from tristore.filestore.job_runner import JobRunner
from tristore.filestore.jobs import JobRequest
from tristore.filestore.model import Outcome
from tristore.filestore.reconcile import Reconciler

# What a command may meet on a disk that strangers write to.
SURPRISES = (*REFUSALS, errors.ChangedOutside, errors.ContentConflict, errors.ContentGone)


class StrangerMachine(FilestoreMachine):
    """Strangers change files between commands; now and then everything is settled. Until then the
    model knows nothing for sure, so commands may be refused; afterwards the disk is the truth."""

    certain = True

    def attempt(self, modelled: Callable[[Model], None], command: Awaitable[Outcome]) -> None:
        if self.certain:
            super().attempt(modelled, command)
            return
        try:
            self.run(command)
        except SURPRISES:
            pass

    def outside(self, place: int | str) -> Path:
        self.certain = False
        return self.folder / self.path(place)

    @rule(place=PLACES, data=DATA)
    def stranger_writes(self, place: int | str, data: bytes) -> None:
        path = self.outside(place)
        if not path.is_dir() and _directory(path.parent):
            path.write_bytes(data)

    @rule(path=PATHS, names=st.lists(NAMES, max_size=2))
    def stranger_makes_a_tree(self, path: str, names: list[str]) -> None:
        if _directory(self.outside(path)):
            for name in names:
                if not (self.folder / path / name).exists():
                    (self.folder / path / name).write_bytes(name.encode())

    @rule(place=PLACES)
    def stranger_removes(self, place: int | str) -> None:
        _remove(self.outside(place))

    @rule(place=PLACES, to=PATHS)
    def stranger_renames(self, place: int | str, to: str) -> None:
        source, target = self.outside(place), self.folder / to
        if source.exists() and not target.exists() and _directory(target.parent):
            if source not in (target, *target.parents):
                os.rename(source, target)

    @rule(place=PLACES)
    def stranger_changes_the_kind(self, place: int | str) -> None:
        path = self.outside(place)
        if path.is_dir():
            _remove(path)
            path.write_bytes(b"a file now")
        elif path.exists():
            path.unlink()
            (path / "inside").mkdir(parents=True)

    @rule(place=PLACES)
    def stranger_touches(self, place: int | str) -> None:
        path = self.outside(place)
        if path.exists():
            os.utime(path, ns=(1, 1))

    @rule()
    def settle(self) -> None:
        if not self.certain:
            self.run(self._settle())

    async def _settle(self) -> None:
        bench = self.store.bench
        worker = asyncio.create_task(Reconciler(bench).run())
        async with bench.pool.connection() as conn:
            await jobs.create(conn, self.mount, JobRequest("reconcile"), support.ME)
            job = await jobs.take(conn, bench.owner.id)
            assert job is not None
            await JobRunner(bench).carry_out(job)
            assert (await jobs.get(conn, job.id)).state == "completed"
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        assert drifting(self.store) == []
        nodes = await support.check(self.store, self.mount, self.folder)
        # A path whose node is missing is not free in every way: the model is sure without such.
        self.certain = all(node.present for node in nodes.values())
        disk = support.on_disk(self.folder)
        found = {path: node for path, node in nodes.items() if node.present}
        self.ids.clear()
        self.model.things = {
            path: Thing(-node.id, disk[path], node.version, node.metadata)
            for path, node in found.items()
        }

    @invariant()
    def everything_agrees(self) -> None:
        if self.certain:
            super().everything_agrees()

    def teardown(self) -> None:
        if hasattr(self, "mount"):
            self.certain = False
            self.settle()
        super().teardown()


def _directory(path: Path) -> bool:
    """Made if nothing is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.is_file():
        path.unlink()


@pytest.fixture(scope="module")
def platform(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with own_database(server_url) as url:
        made = Platform(url, tmp_path_factory.mktemp("model"))
        yield made
        made.close()


def test_strangers_and_commands_end_in_one_tree(platform: Platform) -> None:
    StrangerMachine.platform = platform
    run_state_machine_as_test(
        StrangerMachine,
        settings=settings(
            max_examples=10,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
