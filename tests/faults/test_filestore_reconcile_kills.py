"""kill -9 at every step of an import and of a reconciliation: the next worker goes on, every node
is told once, and journal, nodes, disk, sums and events agree."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import tristore.filestore
from tests.support import filestore as support
from tests.support.api import own_database
from tests.support.filestore import ME, SMALL_CHUNKS, check, new_mount, write
from tests.support.upkeep import finished, told_of
from tests.support.upkeep_child import Shift, killed
from tristore.filestore import jobs
from tristore.filestore.jobs import JobRequest
from tristore.filestore.store import Filestore

_FAILPOINT = re.compile(r'"filestore\.((?:import|reconcile)\.\w+)"')
# A kill at the first, the second and a later pass; more would only be more of the same.
_PASSES = (1, 2, 5)


def failpoints() -> list[str]:
    """As the code has them: a new step is killed here from its first day."""
    folder = Path(str(tristore.filestore.__path__[0]))
    found = (_FAILPOINT.findall(path.read_text("utf-8")) for path in folder.glob("*.py"))
    return sorted({name for names in found for name in names})


@pytest.fixture(scope="module")
def database(server_url: str) -> Iterator[str]:
    with own_database(server_url) as url:
        yield url


def test_every_step_is_known_to_somebody() -> None:
    assert {"import.after_chunk", "reconcile.after_detect", "reconcile.after_settle"} <= {
        *failpoints()
    }


@pytest.mark.parametrize("name", failpoints())
async def test_the_next_worker_goes_on(name: str, database: str, tmp_path: Path) -> None:
    settings = support.settings_for(database, tmp_path / "data", SMALL_CHUNKS)
    deaths = 0
    async with support.own_filestore(settings) as store:
        for nth in _PASSES:
            folder = tmp_path / str(nth)
            play = _play_import if name.startswith("import.") else _play_reconcile
            deaths += await play(store, folder, f"filestore.{name}:exit9:{nth}")
    assert deaths > 0, f"no scenario comes past {name}"


async def _play_import(store: Filestore, root: Path, failpoint: str) -> bool:
    for number in range(6):
        (root / f"d{number % 2}").mkdir(parents=True, exist_ok=True)
        (root / f"d{number % 2}/f{number}").write_bytes(b"x" * number)
    mount = await new_mount(store, root)
    async with store.bench.pool.connection() as conn:
        job = await jobs.create(conn, mount, JobRequest("import"), ME)
    died = _work(store, Shift(*_where(store), failpoint, job.id))
    assert (await finished(store, job.id)).state == "completed"
    nodes = await check(store, mount, root)
    told = told_of(store, mount, "filestore.nodes.imported")
    imported = Counter(node["path"] for event in told for node in event["payload"]["nodes"])
    assert imported == Counter(nodes.keys())
    return died


async def _play_reconcile(store: Filestore, root: Path, failpoint: str) -> bool:
    mount = await new_mount(store, root)
    for path in ("gone/deep/f", "gone/g", "turned/f", "turned/g", "turned/h", "changed", "lost"):
        await write(store, mount, path, path.encode())
    shutil.rmtree(root / "gone")
    shutil.rmtree(root / "turned")
    (root / "turned").write_bytes(b"a file now")
    (root / "changed").write_bytes(b"by a stranger")
    os.rename(root / "lost", root / "found")
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/f").write_bytes(b"1")
    noticed = ("changed", "found", "gone", "lost", "new", "turned")
    died = _work(store, Shift(*_where(store), failpoint, mount=mount.name, noticed=noticed))
    await check(store, mount, root)
    told = Counter(event["payload"]["path"] for event in told_of(store, mount, "filestore.drift."))
    assert told == Counter(noticed)
    return died


def _work(store: Filestore, shift: Shift) -> bool:
    """One worker dies, if it comes that far; another does what is left."""
    died = killed(shift)
    if died:
        assert not killed(replace(shift, failpoint="", noticed=()))
    return died


def _where(store: Filestore) -> tuple[str, Path]:
    return store.bench.pool.conninfo, store._settings.data_dir
