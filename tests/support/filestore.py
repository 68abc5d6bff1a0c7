"""A filestore with a folder of its own, and what must be true of it after anything that happens."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString
from uuid import uuid4

from psycopg.rows import dict_row

from tristore.config import FilestoreSettings, Settings
from tristore.db.pool import make_pool
from tristore.events import strictjson
from tristore.filestore import doctor
from tristore.filestore.model import Caller, Mount, Node, Rollup
from tristore.filestore.store import Filestore
from tristore.wiring import open_filestore

ME = Caller(principal="tester", correlation_id="corr-1")
# Small, so that a handful of nodes is a recursive command of several chunks.
SMALL_CHUNKS = FilestoreSettings(chunk_nodes=2, wait_seconds=5)


def settings_for(
    database_url: str, data_dir: Path, filestore: FilestoreSettings | None = None
) -> Settings:
    return Settings(
        database_url=database_url,
        redis_url="inline",
        data_dir=data_dir,
        filestore=filestore or FilestoreSettings(wait_seconds=5),
    )


@asynccontextmanager
async def own_filestore(
    settings: Settings, *, recovering: bool = False
) -> AsyncIterator[Filestore]:
    async with (
        make_pool(str(settings.database_url), name="test", max_size=12) as pool,
        open_filestore(settings, pool, recovering=recovering) as filestore,
    ):
        yield filestore


def new_name() -> str:
    return f"m{uuid4().hex[:12]}"


async def new_mount(filestore: Filestore, folder: Path, **fields: Any) -> Mount:
    folder.mkdir(parents=True, exist_ok=True)
    spec = {"name": new_name(), "kind": "local", "root": str(folder), **fields}
    return await filestore.create_mount(ME, spec)


async def content(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 1 << 16):
        yield data[start : start + (1 << 16)]


async def write(filestore: Filestore, mount: Mount, path: str, data: bytes, **options: Any) -> Node:
    outcome = await filestore.put(ME, mount.name, path, content(data), **options)
    return outcome.node


async def read(filestore: Filestore, mount: Mount, path: str) -> bytes:
    _, _, pieces = await filestore.open_file(ME, mount.name, path)
    return b"".join([piece async for piece in pieces])


async def tree(store: Filestore, mount: Mount) -> None:
    for number in range(5):
        await write(store, mount, f"in/deep/f{number}", b"x" * (number + 1))
    await write(store, mount, "in/top", b"top")
    await store.create_directory(ME, mount.name, "in/empty")


def on_disk(folder: Path) -> dict[str, bytes | None]:
    """Files with their bytes, directories with None; the filestore's own folder is not content,
    nor are links."""
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] != ".tristore" and not path.is_symlink():
            found[name] = path.read_bytes() if path.is_file() else None
    return found


async def tracked(filestore: Filestore, mount: Mount, **chosen: Any) -> dict[str, Node]:
    found: dict[str, Node] = {}
    cursor: str | None = None
    while True:
        page, cursor = await filestore.nodes(ME, mount.name, limit=100, cursor=cursor, **chosen)
        found |= {node.path: node for node in page}
        if cursor is None:
            return found


@dataclass
class Told:
    """What the outbox says about one mount."""

    bytes: int = 0
    versions: Counter[tuple[str, int]] = field(default_factory=Counter)
    ended: dict[int, str] = field(default_factory=dict)
    types: list[str] = field(default_factory=list)


async def ask(filestore: Filestore, query: LiteralString, *params: Any) -> list[dict[str, Any]]:
    """Over a connection that is there already: a new one takes longer than the question."""
    async with filestore.bench.pool.connection() as conn:
        found = await conn.cursor(row_factory=dict_row).execute(query, params)
        return await found.fetchall()


async def told(filestore: Filestore, mount: str) -> Told:
    found = Told()
    query = "SELECT envelope FROM bus.outbox WHERE envelope LIKE %s ORDER BY id"
    for row in await ask(filestore, query, f'%ount":"{mount}"%'):
        event = strictjson.loads(row["envelope"].encode())
        payload = event["payload"]
        if payload.get("previousMount") == mount:
            found.bytes -= payload["sizeDelta"]
        if payload["mount"] != mount:
            continue
        found.types.append(event["type"])
        if event["type"] == "filestore.command.completed":
            assert payload["journalId"] not in found.ended, "a command was told to end twice"
            found.ended[payload["journalId"]] = payload["status"]
        elif event["type"] == "filestore.nodes.imported":
            found.bytes += payload["sizeDelta"]
            found.versions.update((n["nodeId"], n["version"]) for n in payload["nodes"])
        elif event["type"].startswith("filestore.node."):
            found.bytes += payload["sizeDelta"]
            # A reconciliation that found nothing new tells of a version that was told before.
            if payload.get("outcome") != "unchanged":
                found.versions[payload["nodeId"], payload["version"]] += 1
    return found


async def check(filestore: Filestore, mount: Mount, folder: Path) -> dict[str, Node]:
    """Disk, nodes, versions, sums, journal and events of a mount tell one story."""
    disk, nodes = on_disk(folder), await tracked(filestore, mount)
    present = {path: node for path, node in nodes.items() if node.present}
    assert disk.keys() == present.keys()
    for path, data in disk.items():
        node = present[path]
        assert (node.kind == "directory") is (data is None), path
        assert node.size_bytes == len(data or b""), path
        if data is not None and node.checksum is not None:
            assert node.checksum == f"sha256:{hashlib.sha256(data).hexdigest()}", path
    assert await doctor.examine(filestore.bench.pool, mount) == []
    assert await sums(filestore, mount, nodes) == counted(present)
    await _check_journal(filestore, mount)
    await _check_events(filestore, mount, sum(len(data or b"") for data in disk.values()))
    return nodes


async def sums(filestore: Filestore, mount: Mount, nodes: dict[str, Node]) -> dict[str, Rollup]:
    root = await filestore.by_path(ME, mount.name, "")
    ids = {"": root.id} | {p: n.id for p, n in nodes.items() if n.kind == "directory" and n.present}
    found = await filestore.rollups(list(ids.values()))
    return {path: found[node_id] for path, node_id in ids.items()}


def counted(present: dict[str, Node]) -> dict[str, Rollup]:
    """The sums of every directory, added up the plain way."""
    found: dict[str, Rollup] = defaultdict(Rollup)
    found[""] = Rollup()
    for path, node in present.items():
        if node.kind == "directory":
            found[path] += Rollup()
        parts = path.split("/")[:-1]
        for depth in range(len(parts) + 1):
            is_file = node.kind == "file"
            found["/".join(parts[:depth])] += Rollup(node.size_bytes, is_file, not is_file)
    return dict(found)


async def _check_journal(filestore: Filestore, mount: Mount) -> None:
    query = "SELECT * FROM filestore.claims WHERE mount_id = %s"
    assert await ask(filestore, query, mount.id) == []
    query = "SELECT id FROM filestore.journal_entries WHERE mount_id = %s AND state = 'applying'"
    assert await ask(filestore, query, mount.id) == []


async def _check_events(filestore: Filestore, mount: Mount, size: int) -> None:
    """Every version of every node was told once, every command ended once, and the bytes that
    were told add up to what lies there."""
    found = await told(filestore, mount.name)
    query = "SELECT node_id, version FROM filestore.snapshots WHERE mount_id = %s"
    kept = await ask(filestore, query, mount.id)
    assert dict(found.versions) == {(str(row["node_id"]), row["version"]): 1 for row in kept}
    assert found.bytes == size
    query = """SELECT id, state FROM filestore.journal_entries
        WHERE mount_id = %s AND command NOT IN ('import', 'reconcile')"""
    entries = await ask(filestore, query, mount.id)
    assert found.ended == {row["id"]: row["state"] for row in entries}
