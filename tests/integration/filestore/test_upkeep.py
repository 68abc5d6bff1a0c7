"""What keeps a filestore sound: the doctor and housekeeping."""

from pathlib import Path

import psycopg

from tests.support.filestore import ME, SMALL_CHUNKS, content, tree
from tristore.filestore import doctor, housekeeping
from tristore.filestore.model import Mount, Rollup
from tristore.filestore.store import Filestore


async def test_the_doctor_finds_and_repairs_wrong_sums(
    store: Filestore, mount: Mount, database: str
) -> None:
    await tree(store, mount)
    top = await store.by_path(ME, mount.name, "in")
    right = await store.rollup(top.id)
    assert await doctor.examine(store.bench.pool, mount) == []
    with psycopg.connect(database, autocommit=True) as conn:
        query = "UPDATE filestore.rollups SET files = files + 3 WHERE node_id = %s"
        conn.execute(query, [top.id])
    (found,) = await doctor.examine(store.bench.pool, mount)
    assert (found.path, found.counted) == ("in", right)
    assert await doctor.examine(store.bench.pool, mount, repair=True) == [found]
    assert await doctor.examine(store.bench.pool, mount) == []
    assert await store.rollup(top.id) == right == Rollup(18, 6, 2)


async def test_housekeeping_sweeps_what_nobody_needs(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    blobs = await store.blobs(mount)
    await blobs.stage("abandoned", content(b"x"), "f")
    await blobs.stage("held", content(b"x"), "g")
    store.bench.owner.in_hand.add("held")
    old = SMALL_CHUNKS.model_copy(update={"staging_keep_seconds": -1})
    store.bench.settings = old
    assert await housekeeping.sweep(store) >= 1
    left = [path.name for path in (folder / ".tristore").rglob("*") if path.is_file()]
    assert left == ["held"]
