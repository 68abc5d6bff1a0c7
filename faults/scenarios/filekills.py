"""The filestore killed at every step of its commands and workers: old or new, and all agrees."""

import asyncio
import os
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import tristore.filestore
from faults.filetree import FileTree, own_store, planted, told
from faults.stage import Outcome, Stage
from tests.support import filestore_child, upkeep_child
from tests.support.filestore import ME, check, new_mount, write
from tests.support.filestore_child import Errand
from tests.support.upkeep import finished, told_of
from tests.support.upkeep_child import Shift
from tristore.filestore import jobs
from tristore.filestore.jobs import JobRequest
from tristore.filestore.store import Filestore

COMMANDS = ["put", "directory", "move", "copy", "delete", "metadata"]
WORKERS = ["import", "reconcile"]
# Not every command comes past every step, nor often; among so many by chance one does.
_TRIES = 60
_PASSES = (1, 1, 1, 2, 3)


def points(command: str) -> list[str]:
    """As the code has them: a new step is killed here from its first day."""
    pattern = re.compile(rf'"(filestore\.{command}\.\w+)"')
    folder = Path(str(tristore.filestore.__path__[0]))
    found = (pattern.findall(path.read_text("utf-8")) for path in folder.glob("*.py"))
    return sorted({name for names in found for name in names})


def command_killed(stage: Stage, command: str) -> Outcome:
    """F31. A process dies at each step of a command; what recovers may die there too. Then the
    command is done whole, or it never was."""
    chosen = _chosen(stage, command)
    deaths = asyncio.run(_kill_commands(stage, command, chosen))
    return _outcome(stage, chosen, deaths)


def worker_killed(stage: Stage, command: str) -> Outcome:
    """F31. A worker dies at each step of an import or a reconciliation; the next one goes on, and
    nothing is told twice."""
    chosen = _chosen(stage, command)
    deaths = asyncio.run(_kill_workers(stage, command, chosen))
    return _outcome(stage, chosen, deaths)


def _chosen(stage: Stage, command: str) -> list[str]:
    """Every step, and more of them by chance if more faults are asked for."""
    found = points(command)
    assert found, f"{command} has no steps to be killed at"
    more = [stage.chance.choice(found) for _ in range(stage.faults - len(found))]
    return stage.chance.sample(found, len(found)) + more


def _outcome(stage: Stage, chosen: list[str], deaths: int) -> Outcome:
    events = told(stage)
    assert deaths >= len(chosen) and events > deaths
    return Outcome(events, deaths)


async def _kill_commands(stage: Stage, name: str, chosen: list[str]) -> int:
    async with planted(stage) as tree:
        deaths = [await _kill_command(tree, name, point) for point in chosen]
        await tree.check_swept()
    return sum(deaths)


async def _kill_command(tree: FileTree, name: str, point: str) -> int:
    """Says how many processes died until one did at this step, its heirs counted."""
    for _ in range(_TRIES):
        await tree.grow()
        nth = tree.stage.chance.choice(_PASSES)
        if deaths := await _strike(tree, name, point, nth):
            return deaths
    raise AssertionError(f"no {name} comes past {point}")


async def _strike(tree: FileTree, name: str, point: str, nth: int) -> int:
    before, (entry, _) = tree.trees(), await tree.last_entry()
    command = tree.command(name)
    deaths = _dies(tree, command.method, command.args, f"{point}:exit9:{nth}")
    if deaths and tree.stage.chance.random() < 0.5:
        deaths += _dies(tree, "recover", (), f"{point}:exit9:1")
    await tree.store.recover()
    last, state = await tree.last_entry()
    if last == entry:
        assert deaths and point.endswith("after_stage"), "it began and left no trace"
        assert tree.trees() == before
    else:
        assert state == "completed", "whatever had begun is finished"
        await tree.check_done(command)
    await tree.check()
    return deaths


def _dies(tree: FileTree, method: str, args: tuple[object, ...], failpoint: str) -> int:
    return filestore_child.killed(Errand(*_where(tree.store), method, args, failpoint))


def _where(store: Filestore) -> tuple[str, Path]:
    return str(store.bench.pool.conninfo), store._settings.data_dir


async def _kill_workers(stage: Stage, name: str, chosen: list[str]) -> int:
    play = {"import": _import, "reconcile": _reconcile}[name]
    async with own_store(stage) as store:
        deaths = 0
        for number, point in enumerate(chosen):
            for attempt in range(_TRIES):
                folder = stage.folder / f"{name}-{number}-{attempt}"
                failpoint = f"{point}:exit9:{stage.chance.choice(_PASSES)}"
                if await play(stage, store, folder, failpoint):
                    break
            else:
                raise AssertionError(f"no {name} comes past {point}")
            deaths += 1
    return deaths


async def _import(stage: Stage, store: Filestore, root: Path, failpoint: str) -> bool:
    for number in range(stage.chance.randint(3, 12)):
        file = root / f"d{stage.chance.randint(0, 2)}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(stage.chance.randbytes(number))
    mount = await new_mount(store, root)
    async with store.bench.pool.connection() as conn:
        job = await jobs.create(conn, mount, JobRequest("import"), ME)
    died = _work(Shift(*_where(store), failpoint, job.id))
    assert (await finished(store, job.id)).state == "completed"
    nodes = await check(store, mount, root)
    found = told_of(store, mount, "filestore.nodes.imported")
    imported = Counter(node["path"] for event in found for node in event["payload"]["nodes"])
    assert imported == Counter(nodes.keys())
    return died


async def _reconcile(stage: Stage, store: Filestore, root: Path, failpoint: str) -> bool:
    mount = await new_mount(store, root)
    for path in ("gone/deep/f", "gone/g", "turned/f", "turned/g", "turned/h", "changed", "lost"):
        await write(store, mount, path, stage.chance.randbytes(100))
    noticed = tuple(sorted(_meddle(stage, root)))
    died = _work(Shift(*_where(store), failpoint, mount=mount.name, noticed=noticed))
    await check(store, mount, root)
    drift = told_of(store, mount, "filestore.drift.")
    assert Counter(event["payload"]["path"] for event in drift) == Counter(noticed)
    return died


def _meddle(stage: Stage, root: Path) -> set[str]:
    """What a stranger does, or most of it; says at which paths."""
    done = set(stage.chance.sample(["gone", "turned", "changed", "lost", "new"], 4))
    if done & {"gone"}:
        shutil.rmtree(root / "gone")
    if done & {"turned"}:
        shutil.rmtree(root / "turned")
        (root / "turned").write_bytes(b"a file now")
    if done & {"changed"}:
        (root / "changed").write_bytes(b"by a stranger")
    if done & {"new"}:
        (root / "new/deep").mkdir(parents=True)
        (root / "new/deep/f").write_bytes(b"1")
    if done & {"lost"}:
        os.rename(root / "lost", root / "found")
        done.add("found")
    return done


def _work(shift: Shift) -> bool:
    """One worker dies, if it comes that far; another does what is left."""
    died = upkeep_child.killed(shift)
    if died:
        assert not upkeep_child.killed(replace(shift, failpoint="", noticed=()))
    return died
