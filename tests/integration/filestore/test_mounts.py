"""Mounts: how they are made, and what is seen of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.filestore import ME, content, new_mount, write
from tristore import errors
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore


async def test_a_mount_is_made_once_and_only_where_it_may_be(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    spec = {"name": mount.name, "kind": "local", "root": str(folder)}
    below, beside = folder / "below", folder.parent / "beside"
    below.mkdir()
    beside.mkdir()
    (folder.parent / "all").symlink_to(folder)
    with pytest.raises(errors.PathConflict):
        await store.create_mount(ME, spec)
    with pytest.raises(errors.PathConflict):
        await store.create_mount(ME, {**spec, "root": str(beside)})
    again = await store.create_mount(replace(ME, idempotency_key="k"), spec)
    assert again.id == mount.id
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        (errors.InvalidQuery, {"name": "Bad Name"}),
        (errors.InvalidRequest, {"kind": "ftp"}),
        (errors.InvalidRequest, {"root": 5}),
        (errors.InvalidRequest, {"secret": "x"}),
        (errors.MountRefused, {"root": "/etc"}),
        (errors.MountRefused, {}),
        (errors.MountRefused, {"root": str(folder.parent / "all")}),
        (errors.MountRefused, {"root": str(below)}),
    ]
    for number, (expected, fields) in enumerate(refused):
        with pytest.raises(expected):
            await store.create_mount(ME, {**spec, "name": f"{mount.name}-{number}", **fields})
    assert [*below.iterdir(), *beside.iterdir()] == [], "a folder that is refused stays as it was"


async def test_the_key_of_a_mount_is_of_one_request(store: Filestore, tmp_path: Path) -> None:
    keyed = replace(ME, token_id=uuid4(), idempotency_key="k")
    names = [f"m{uuid4().hex}" for _ in range(2)]
    for name in names:
        (tmp_path / name).mkdir()
    first, other = ({"name": n, "kind": "local", "root": str(tmp_path / n)} for n in names)
    made = await store.create_mount(keyed, first)
    assert (await store.create_mount(keyed, first)).id == made.id
    with pytest.raises(errors.KeyConflict):
        await store.create_mount(keyed, other)
    assert (await store.create_mount(replace(keyed, token_id=uuid4()), other)).name == names[1]


async def test_an_observed_mount_takes_no_commands(store: Filestore, folder: Path) -> None:
    mount = await new_mount(store, folder, access="observe")
    (folder / "f").write_bytes(b"x")
    for attempt in (
        lambda: write(store, mount, "g", b"x"),
        lambda: store.create_directory(ME, mount.name, "d"),
        lambda: store.delete(ME, mount.name, "f"),
        lambda: store.move(ME, mount.name, "f", "g"),
    ):
        with pytest.raises(errors.ReadOnly):
            await attempt()
    assert not (folder / ".tristore").exists()


async def test_a_limited_caller_sees_nothing_of_other_mounts(
    store: Filestore, mount: Mount, folder: Path
) -> None:
    node = await write(store, mount, "f", b"x")
    other = await new_mount(store, folder.with_name("other"))
    limited = replace(ME, mounts=[other.name])
    entry = (await store.journal(ME, limit=1000))[-1]
    absent = "there is no mount called"
    for attempt in (
        lambda: store.put(limited, mount.name, "g", content(b"")),
        lambda: store.nodes(limited, mount.name),
        lambda: store.move(limited, other.name, "a", "b", mount.name),
        lambda: store.open_file(limited, mount.name, "f"),
    ):
        with pytest.raises(errors.NotFound, match=absent):
            await attempt()
    for attempt in (
        lambda: store.node(limited, node.id),
        lambda: store.children(limited, node.parent_id or 0),
        lambda: store.history(limited, node.id),
        lambda: store.entry(limited, entry.id),
    ):
        with pytest.raises(errors.NotFound):
            await attempt()
    assert [found.name for found in await store.mounts(limited)] == [other.name]
    assert await store.journal(limited, limit=1000) == []
    assert mount.name in {found.name for found in await store.mounts(ME)}
