"""A request that is sent again: one answer for one key."""

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.filestore import ME, check, content, write
from tristore import errors
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore


async def test_an_idempotency_key_is_answered_once(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    keyed = replace(ME, token_id=uuid4(), idempotency_key="k1")
    name = mount.name
    first = await store.put(keyed, name, "f", content(b"x"))
    again = await store.put(keyed, name, "f", content(b"x"))
    assert (again.node, again.journal_id, again.replayed) == (first.node, first.journal_id, True)
    with pytest.raises(errors.KeyConflict):
        await store.put(keyed, name, "f", content(b"y"))
    with pytest.raises(errors.KeyConflict):
        await store.delete(keyed, name, "f")
    other = replace(keyed, token_id=uuid4())
    assert not (await store.put(other, name, "f", content(b"y"))).replayed
    for key, command in {
        "move": lambda by: store.move(by, name, "f", "g"),
        "copy": lambda by: store.copy(by, name, "g", "h"),
        "delete": lambda by: store.delete(by, name, "h"),
        "mkdir": lambda by: store.create_directory(by, name, "d"),
        "meta": lambda by: store.update_metadata(by, name, "g", {"a": 1}),
    }.items():
        by = replace(ME, token_id=uuid4(), idempotency_key=key)
        first, again = await command(by), await command(by)
        assert (again.replayed, again.node) == (True, first.node)
    await check(store, mount, folder)


async def test_two_requests_with_one_key_at_once_are_one(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    keyed = replace(ME, token_id=uuid4(), idempotency_key="k")
    attempts = [store.put(keyed, mount.name, "f", content(b"x")) for _ in range(8)]
    outcomes = await asyncio.gather(*attempts)
    assert sum(not outcome.replayed for outcome in outcomes) == 1
    assert len({outcome.journal_id for outcome in outcomes}) == 1
    assert (await check(store, mount, folder))["f"].version == 1


async def test_a_failed_command_frees_its_key(store: Filestore, mount: Mount, folder: Path) -> None:
    await write(store, mount, "f", b"old")
    (folder / "f").write_bytes(b"changed behind its back")
    keyed = replace(ME, token_id=uuid4(), idempotency_key="k")
    with pytest.raises(errors.ChangedOutside):
        await store.put(keyed, mount.name, "f", content(b"new"))
    assert (folder / "f").read_bytes() == b"changed behind its back"
    (failed,) = [e for e in await store.journal(ME, limit=1000) if e.command == "put"][-1:]
    assert (failed.state, failed.idempotency_key) == ("failed", "k")
    outcome = await store.put(keyed, mount.name, "g", content(b"new"))
    assert not outcome.replayed
