"""Commands and readers that meet what somebody else did to the files."""

import hashlib
import os
from pathlib import Path

import psycopg
import pytest

from tests.support import filestore as support
from tests.support.database import rows
from tests.support.filestore import ME, read, write
from tests.support.upkeep import audit, drifting, kept_up
from tests.support.waiting import until
from tristore import errors
from tristore.filestore import doctor
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore

WHOLE = f"sha256:{hashlib.sha256(b'the whole of it').hexdigest()}"


async def test_content_changed_outside_is_not_served_but_reconciled(
    store: Filestore, mount: Mount, folder: Path, database: str
) -> None:
    await write(store, mount, "f", b"old")
    (folder / "f").write_bytes(b"changed behind its back")
    with pytest.raises(errors.ChangedOutside):
        await read(store, mount, "f")
    with pytest.raises(errors.ChangedOutside):
        await store.copy(ME, mount.name, "f", "g")
    with pytest.raises(errors.ChangedOutside):
        await store.move(ME, mount.name, "f", "g")
    with pytest.raises(errors.ChangedOutside):
        await store.delete(ME, mount.name, "f")
    query = "SELECT path FROM filestore.drifts WHERE mount_id = %s"
    assert [row["path"] for row in rows(database, query, mount.id)] == ["f"]
    assert support.on_disk(folder) == {"f": b"changed behind its back"}


async def test_a_file_that_lost_its_end_is_damaged_and_no_new_version(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    """A disk that loses bytes moves no time; a stranger who writes does."""
    for name in ("lost", "cut"):
        await write(store, mount, name, b"the whole of it")
        times = (folder / name).stat()
        os.truncate(folder / name, 5)
        if name == "lost":
            os.utime(folder / name, ns=(times.st_atime_ns, times.st_mtime_ns))
        else:
            assert (folder / name).stat().st_mtime_ns != times.st_mtime_ns
    with pytest.raises(errors.ContentDamaged):
        await read(store, mount, "lost")
    with pytest.raises(errors.ChangedOutside):
        await read(store, mount, "cut")

    async def settled() -> bool:
        return not drifting(store)

    async with kept_up(store):
        await until(settled, 60)
    lost, cut = [await store.by_path(ME, mount.name, name) for name in ("lost", "cut")]
    assert (lost.state, lost.size_bytes, lost.checksum) == ("inconsistent", 15, WHOLE)
    assert (cut.state, cut.size_bytes, cut.version) == ("active", 5, 2)
    os.truncate(folder / "lost", 0)
    (folder / "lost").write_bytes(b"the whole of it")
    async with kept_up(store):
        await audit(store, mount)
        await until(settled, 60)
    assert await read(store, mount, "lost") == b"the whole of it"


async def test_an_unknown_file_in_the_way_is_kept(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    (folder / "f").write_bytes(b"a stranger's")
    with pytest.raises(errors.ChangedOutside):
        await write(store, mount, "f", b"new")
    assert (folder / "f").read_bytes() == b"a stranger's"


async def test_a_missing_file_comes_back_by_a_put(
    store: Filestore, mount: Mount, folder: Path, database: str
) -> None:
    node = await write(store, mount, "d/f", b"12345")
    with psycopg.connect(database, autocommit=True) as conn:
        # As the reconciler leaves them, with the sums it takes off.
        query = "UPDATE filestore.nodes SET state = 'missing' WHERE mount_id = %s AND path = %s"
        conn.execute(query, [mount.id, "d/f"])
        conn.execute(query, [mount.id, "d"])
    await doctor.examine(store.bench.pool, mount, repair=True)
    (folder / "d/f").unlink()
    (folder / "d").rmdir()
    with pytest.raises(errors.PathConflict, match="missing"):
        await store.copy(ME, mount.name, "d/f", "e")
    back = await write(store, mount, "d/f", b"123", if_none_match=True)
    assert (back.id, back.version, back.state) == (node.id, 2, "active")
    nodes = await support.tracked(store, mount)
    assert await support.sums(store, mount, nodes) == support.counted(nodes)
    payloads = [
        row["p"]
        for row in rows(
            database,
            """SELECT envelope::json -> 'payload' p FROM bus.outbox
               WHERE envelope::json ->> 'type' = 'filestore.node.updated'
               AND envelope::json #>> '{payload,mount}' = %s ORDER BY id""",
            mount.name,
        )
    ]
    assert [(p["path"], p["sizeDelta"]) for p in payloads] == [("d", 0), ("d/f", 3)]
