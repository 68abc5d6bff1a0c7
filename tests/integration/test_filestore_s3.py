"""The filestore's commands on a bucket, and between a bucket and a folder."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support import filestore as support
from tests.support.api import own_database
from tests.support.filestore import ME, SMALL_CHUNKS, check, counted, new_mount, read, write
from tests.support.s3 import S3Server, moto
from tristore import errors
from tristore.filestore import doctor
from tristore.filestore.model import Mount
from tristore.filestore.store import Filestore

TREE = {"in/deep/1": b"one", "in/deep/2": b"two", "in/deep/3": b"three", "in/top": b"top"}


@pytest.fixture(scope="module")
def database(server_url: str) -> Iterator[str]:
    with own_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with moto() as found:
        yield found


@pytest.fixture
async def store(
    database: str, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Filestore]:
    for name, value in server.environment("S3_T").items():
        monkeypatch.setenv(name, value)
    chosen = SMALL_CHUNKS.model_copy(update={"allowed_endpoints": server.url})
    settings = support.settings_for(database, tmp_path / "data", chosen)
    async with support.own_filestore(settings) as filestore:
        yield filestore


@pytest.fixture
async def bucket(store: Filestore, server: S3Server, tmp_path: Path) -> Mount:
    spec = {"kind": "s3", "bucket": server.bucket, "prefix": tmp_path.name}
    spec |= {"name": support.new_name(), "endpoint": server.url, "credentials": "env:S3_T"}
    return await store.create_mount(ME, spec)


async def test_a_bucket_is_known_again_however_it_is_written(
    store: Filestore, bucket: Mount, server: S3Server
) -> None:
    spec = {"kind": "s3", "bucket": server.bucket, "prefix": f"{bucket.config['prefix']}/inside"}
    spec |= {"name": support.new_name(), "credentials": "env:S3_T"}
    for place in ({"endpoint": f"{server.url}/"}, {"endpoint": server.url, "region": "us-east-1"}):
        with pytest.raises(errors.MountRefused, match="another mount"):
            await store.create_mount(ME, spec | place)


async def held(store: Filestore, mount: Mount) -> dict[str, bytes]:
    """What the mount gives back for every file it knows, once its sums and sizes agree."""
    nodes = await support.tracked(store, mount)
    assert await doctor.examine(store.bench.pool, mount) == []
    assert await support.sums(store, mount, nodes) == counted(nodes)
    found = {p: await read(store, mount, p) for p, node in nodes.items() if node.kind == "file"}
    objects = {
        entry.path
        async for batch in (await store.blobs(mount)).walk()
        for entry in batch
        if entry.kind == "file"
    }
    assert objects == found.keys()
    assert (await support.told(store, mount.name)).bytes == sum(map(len, found.values()))
    return found


async def test_commands_on_a_bucket(store: Filestore, bucket: Mount) -> None:
    for path, data in TREE.items():
        await write(store, bucket, path, data)
    top = await store.by_path(ME, bucket.name, "in/deep/1")
    name = bucket.name
    assert (await write(store, bucket, "in/top", b"top!", if_match=1)).version == 2
    with pytest.raises(errors.VersionMismatch):
        await write(store, bucket, "in/top", b"", if_match=1)
    await store.create_directory(ME, name, "empty/one")
    await store.move(ME, name, "in/top", "top")
    await store.move(ME, name, "in", "moved/in")
    await store.copy(ME, name, "moved/in/deep", "copy")
    await store.copy(ME, name, "top", "top2")
    assert (await store.node(ME, top.id)).path == "moved/in/deep/1"
    deep = {"1": b"one", "2": b"two", "3": b"three"}
    expected = {f"moved/in/deep/{name}": data for name, data in deep.items()}
    expected |= {f"copy/{name}": data for name, data in deep.items()}
    assert await held(store, bucket) == expected | {"top": b"top!", "top2": b"top!"}
    await store.delete(ME, name, "moved")
    await store.delete(ME, name, "top")
    await store.delete(ME, name, "empty", recursive=True)
    copies = {f"copy/{name}": data for name, data in deep.items()}
    assert await held(store, bucket) == copies | {"top2": b"top!"}


async def test_a_tree_goes_to_a_bucket_and_back(
    store: Filestore, bucket: Mount, tmp_path: Path
) -> None:
    folder = tmp_path / "files"
    local = await new_mount(store, folder)
    for path, data in TREE.items():
        await write(store, local, path, data)
    node = await store.by_path(ME, local.name, "in/deep/2")
    await store.copy(ME, local.name, "in/top", "first", bucket.name)
    await store.move(ME, local.name, "in", "from/in", bucket.name)
    assert await check(store, local, folder) == {}
    away = {f"from/{path}": data for path, data in TREE.items()}
    assert await held(store, bucket) == away | {"first": b"top"}
    await store.move(ME, bucket.name, "first", "first", local.name)
    await store.move(ME, bucket.name, "from", "back", local.name)
    assert await held(store, bucket) == {}
    nodes = await check(store, local, folder)
    assert nodes["back/in/deep/2"].id == node.id
    assert (folder / "back/in/deep/3").read_bytes() == b"three"
