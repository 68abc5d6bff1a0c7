"""Lists and the journal's feed, page by page."""

import asyncio

import psycopg
import pytest

from tests.support.filestore import ME, write
from tristore import errors
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore


async def test_lists_are_paged_in_order(store: Filestore, mount: Mount) -> None:
    for path in ("b/2", "b/1", "b/3/x", "b-x", "b0", "a"):
        await write(store, mount, path, path.encode())
    found, cursor, seen = [], None, 0
    while True:
        page, cursor = await store.nodes(ME, mount.name, "b", None, None, 2, cursor)
        found += [node.path for node in page]
        seen += 1
        if cursor is None:
            break
    assert (found, seen) == (["b/1", "b/2", "b/3", "b/3/x"], 2)
    top = await store.by_path(ME, mount.name, "b")
    names, cursor = await store.children(ME, top.id, 2)
    rest, end = await store.children(ME, top.id, 2, cursor)
    assert [node.name for node in (*names, *rest)] == ["1", "2", "3"] and end is None
    directories, _ = await store.nodes(ME, mount.name, kind="directory")
    assert [node.path for node in directories] == ["b", "b/3"]
    await store.delete(ME, mount.name, "b/1")
    await write(store, mount, "b/1", b"")
    await store.delete(ME, mount.name, "b/1")
    deleted, cursor = await store.nodes(ME, mount.name, state="deleted", limit=1)
    more, end = await store.nodes(ME, mount.name, state="deleted", limit=1, cursor=cursor)
    assert [n.path for n in (*deleted, *more)] == ["b/1", "b/1"] and end is None
    assert deleted[0].id != more[0].id
    with pytest.raises(errors.InvalidQuery):
        await store.nodes(ME, mount.name, cursor="nonsense")


async def test_the_feed_shows_nothing_behind_an_open_entry(
    store: Filestore, mount: Mount, database: str
) -> None:
    last = (await store.journal(ME, limit=1000))[-1:]
    after = last[0].id if last else 0
    await write(store, mount, "a", b"1")
    with psycopg.connect(database) as conn:
        # A command between its two commits, of an owner that is alive elsewhere.
        query = """INSERT INTO filestore.journal_entries (command, mount_id, path)
            VALUES ('put', %s, 'held') RETURNING id"""
        (held,) = conn.execute(query, [mount.id]).fetchone() or (0,)
        query = "INSERT INTO filestore.claims VALUES (%s, 'held', false, %s)"
        conn.execute(query, [mount.id, held])
        conn.commit()
        await write(store, mount, "b", b"2")
        assert [entry.path for entry in await store.journal(ME, after)] == ["a"]
        assert (await store.entry(ME, held)).state == "applying"
        conn.execute("DELETE FROM filestore.claims WHERE journal_id = %s", [held])
        conn.execute("UPDATE filestore.journal_entries SET state = 'failed' WHERE id = %s", [held])
    found = await store.journal(ME, after)
    assert [entry.path for entry in found] == ["a", "held", "b"]
    assert [entry.path for entry in await store.journal(ME, found[1].id)] == ["b"]


async def test_the_feed_waits_for_numbers_not_yet_committed(
    store: Filestore, mount: Mount, database: str
) -> None:
    last = (await store.journal(ME, limit=1000))[-1:]
    after = last[0].id if last else 0
    async with await psycopg.AsyncConnection.connect(database) as conn:
        await conn.execute("SELECT pg_advisory_xact_lock_shared(7441, 0)")
        query = """INSERT INTO filestore.journal_entries (command, mount_id, path, state)
            VALUES ('import', %s, 'slow', 'completed')"""
        await conn.execute(query, [mount.id])
        await write(store, mount, "quick", b"2")
        reading = asyncio.create_task(store.journal(ME, after))
        done, _ = await asyncio.wait({reading}, timeout=0.3)
        assert not done, "it would have skipped an entry for ever"
        await conn.commit()
        assert [entry.path for entry in await reading] == ["slow", "quick"]
