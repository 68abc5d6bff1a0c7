"""Import of an existing tree, and an audit of it when nothing changed, beside a bare walk."""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import uvloop

from bench.figure import Figure
from bench.servers import servers
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.filestore import jobs
from tristore.filestore.jobs import JobKind, JobRequest
from tristore.filestore.model import Caller, Mount
from tristore.filestore.store import Filestore
from tristore.filestore.upkeep import Upkeep
from tristore.wiring import open_filestore

FILES = 200_000
PER_FOLDER = 100
# One directory alone holds this share of the files: a tree is rarely even.
CROWDED = 0.25
ME = Caller(principal="bench")


def run(scale: float = 1.0) -> list[Figure]:
    count = max(4000, int(FILES * scale))
    with servers() as (settings, _), tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        grow(root, count)
        return uvloop.run(measure(settings, root))


def grow(root: Path, count: int) -> None:
    crowded = int(count * CROWDED)
    for number in range(count):
        at = number - crowded
        folder = root / "crowded" if at < 0 else root / _folder(at // PER_FOLDER)
        if at < 0 or at % PER_FOLDER == 0:
            folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"file-{number}.dat", "wb") as file:
            file.write(b"x" * 16)


def _folder(number: int) -> str:
    return f"part-{number // 50:03d}/day-{number % 50:02d}"


async def measure(settings: Settings, root: Path) -> list[Figure]:
    async with _working(settings) as filestore:
        spec = {"name": "bench", "kind": "local", "root": str(root)}
        mount = await filestore.create_mount(ME, spec)
        bare = walk(root)
        before = memory()
        imported = await timed(filestore, mount, "import", bare[0])
        grown = memory() - before
        audited = await timed(filestore, mount, "reconcile", bare[0])
    limit = bare[0] / bare[1]
    name = "os.scandir + stat"
    size = f"{bare[0]:,} entries"
    return [
        Figure(f"import, {size}", imported, "/s", limit, name, "10,000 /s"),
        Figure(f"memory an import of {size} takes", grown, "MiB", None, "", "flat"),
        Figure(f"audit, unchanged, {size}", audited, "/s", limit, name, "20,000 /s"),
    ]


@asynccontextmanager
async def _working(settings: Settings) -> AsyncIterator[Filestore]:
    """As `tristore work reconcile` does, in this process, so that its memory can be seen."""
    async with (
        make_pool(str(settings.database_url), name="bench", max_size=8, checked=False) as pool,
        open_filestore(settings, pool) as filestore,
    ):
        task = asyncio.create_task(Upkeep(filestore).run())
        yield filestore
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def timed(filestore: Filestore, mount: Mount, kind: JobKind, count: int) -> float:
    """From the request to the end of the job, in entries a second."""
    pool = filestore.bench.pool
    began = time.perf_counter()
    async with pool.connection() as conn:
        job = await jobs.create(conn, mount, JobRequest(kind), ME)
        while job.state in ("queued", "running"):
            await asyncio.sleep(0.02)
            job = await jobs.get(conn, job.id)
    seconds = time.perf_counter() - began
    assert job.state == "completed", job.error
    assert job.progress["scanned"] == count, job.progress
    assert job.progress["imported"] == (count if kind == "import" else 0), job.progress
    assert job.progress["drifted"] == 0, job.progress
    return count / seconds


def walk(root: Path) -> tuple[int, float]:
    """Every entry found and looked at, and nothing else."""
    began = time.perf_counter()
    count = 0
    waiting = [str(root)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name == ".tristore":
                    continue
                entry.stat(follow_symlinks=False)
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return count, time.perf_counter() - began


def memory() -> float:
    return float(psutil.Process().memory_info().rss) / 1024**2
