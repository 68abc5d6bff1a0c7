"""Many at once: writers, readers, and callers who leave."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from tests.support.database import value
from tests.support.filestore import ME, SMALL_CHUNKS, check, read, tree, write
from tests.support.waiting import until
from tristore import errors
from tristore.filestore import move
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore


async def test_busy_paths_wait_and_say_for_whom(
    store: Filestore, mount: Mount, database: str
) -> None:
    await tree(store, mount)
    store.bench.settings = SMALL_CHUNKS.model_copy(update={"wait_seconds": 0.2})
    with psycopg.connect(database, autocommit=True) as conn:
        query = "INSERT INTO filestore.claims VALUES (%s, 'in/deep', true, 4711)"
        conn.execute(query, [mount.id])
        for attempt in (
            lambda: write(store, mount, "in/deep/f1", b"x"),
            lambda: write(store, mount, "in/deep/new/f", b"x"),
            lambda: store.delete(ME, mount.name, "in"),
            lambda: store.move(ME, mount.name, "in/top", "in/deep/top"),
        ):
            with pytest.raises(errors.Busy, match="4711"):
                await attempt()
        await write(store, mount, "in/deeper", b"not in that tree")
        store.bench.settings = SMALL_CHUNKS
        waiting = asyncio.create_task(write(store, mount, "in/deep/f1", b"x"))
        await asyncio.wait({waiting}, timeout=0.1)
        conn.execute("DELETE FROM filestore.claims WHERE mount_id = %s", [mount.id])
    assert (await waiting).version == 2


async def test_many_writers_in_one_tree(store: Filestore, mount: Mount, folder: Path) -> None:
    """Every sum is right, nobody waits for ever, and no update is lost."""
    store.bench.settings = SMALL_CHUNKS.model_copy(update={"wait_seconds": 60})

    async def writer(number: int) -> None:
        for turn in range(6):
            await write(store, mount, f"t/{turn % 3}/own-{number}", bytes(number + turn))
            await write(store, mount, f"t/{turn % 3}/shared", bytes(turn))
        await store.copy(ME, mount.name, f"t/0/own-{number}", f"c/{number}/f")
        await store.move(ME, mount.name, f"c/{number}", f"m/{number}")
        if number % 2:
            await store.delete(ME, mount.name, f"m/{number}")

    async with asyncio.timeout(90):
        await asyncio.gather(*(writer(number) for number in range(8)))
    nodes = await check(store, mount, folder)
    assert nodes["t/0/shared"].version == 16
    assert len([path for path in nodes if path.startswith("m/")]) == 8


async def test_a_reader_meets_whole_versions_while_they_change(
    store: Filestore, mount: Mount
) -> None:
    await write(store, mount, "f", bytes(1000))
    writing = True

    async def reader() -> int:
        count = 0
        while writing:
            data = await read(store, mount, "f")
            assert len(data) == 1000 and len(set(data)) == 1
            count += 1
        return count

    readers = [asyncio.create_task(reader()) for _ in range(4)]
    for number in range(60):
        await write(store, mount, "f", bytes([number % 250]) * 1000)
    writing = False
    assert all([await one for one in readers])


async def test_a_caller_who_leaves_does_not_stop_a_command_half_way(
    store: Filestore,
    mount: Mount,
    folder: Path,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(step: str) -> None:
        if step == "filestore.move.after_intent":
            moving.cancel()

    await tree(store, mount)
    monkeypatch.setattr(move, "failpoint", leave)
    moving = asyncio.create_task(store.move(ME, mount.name, "in", "out"))
    with pytest.raises(asyncio.CancelledError):
        await moving
    await until(lambda: _free(database, mount))
    assert set(await check(store, mount, folder)) >= {"out", "out/deep/f4"}


async def _free(database: str, mount: Mount) -> bool:
    query = "SELECT count(*) = 0 FROM filestore.claims WHERE mount_id = %s"
    return bool(await asyncio.to_thread(value, database, query, mount.id))
