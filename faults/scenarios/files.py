"""Storage that is full, loses power, or rots under the filestore."""

import asyncio
import os
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx

from faults.filetree import FileTree, Tree, own_store, planted, told
from faults.stage import Outcome, Stage
from tests.support.api import Api
from tests.support.files import SCOPES, Files
from tests.support.filestore import ME, check
from tests.support.upkeep import audit, kept_up
from tests.unit.test_power_loss import ForgetfulDisk, Session
from tristore import failpoints
from tristore.errors import OutcomeUnknown, StorageFull
from tristore.filestore.beneath import Beneath
from tristore.filestore.folder import Folder

_ROOM, _TOO_LARGE = 1_000_000, 1_500_000
_CALLS = ("write", "sync")
_ENOUGH = 5
_FILES = 100
# One piece of a download, and several.
_SIZES = (1, 1000, 70_000, 70_000, 2_500_000)
_DRIFTS = "SELECT count(*) FROM filestore.drifts"


def no_room_for_a_file(stage: Stage) -> Outcome:
    """F29. The system lets no file grow beyond a limit: 507, the old version is read, what fits is
    stored, and with room again all goes on in the same process."""
    with _serving_files(stage) as files:
        files.stored("source", stage.chance.randbytes(_TOO_LARGE))
        faults = sum(_fill_up(stage, files, f"f{number}") for number in range(stage.faults))
        asyncio.run(_check(stage, files))
    return _whole(stage, faults)


def _fill_up(stage: Stage, files: Files, name: str) -> int:
    old, large = stage.chance.randbytes(1000), stage.chance.randbytes(_TOO_LARGE)
    files.stored(name, old)
    with _limited(files.api.pid):
        refused = [
            files.put(name, large),
            files.put(f"new/{name}", large),
            files.command("copy", "source", targetPath=f"copy/{name}"),
        ]
        assert [answer.status_code for answer in refused] == [507] * 3
        assert files.get(name).content == old
        assert files.get(f"new/{name}").status_code == 404
        files.stored(f"small/{name}", old)
    files.stored(name, large)
    assert files.get(name).content == large
    assert files.command("copy", "source", targetPath=f"copy/{name}").status_code == 200
    return len(refused)


@contextmanager
def _limited(pid: int) -> Iterator[None]:
    """The process itself may lift such a limit, and so may we."""
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (_ROOM, hard))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


def full_at_any_call(stage: Stage) -> Outcome:
    """F29. ENOSPC from any write or sync of any command: what is refused has changed no file, what
    cannot be said is finished by recovery, and the next command finds all in order."""
    return _whole(stage, asyncio.run(_run_out(stage)))


async def _run_out(stage: Stage) -> int:
    met: Counter[str] = Counter()
    async with planted(stage) as tree:
        while met.total() - met["nothing"] < _ENOUGH * stage.faults:
            await tree.grow()
            met[await _meet_a_full_disk(tree)] += 1
            await tree.check()
        await tree.check_swept()
    assert met["refused"] > 0
    return met.total() - met["nothing"]


async def _meet_a_full_disk(tree: FileTree) -> str:
    """`nothing`: the command does not come that far, and is done."""
    chance, before = tree.stage.chance, tree.trees()
    command = tree.command(chance.choice(["put", "put", "copy", "move", "directory", "delete"]))
    failpoints.arm(f"filestore.disk.{chance.choice(_CALLS)}:enospc:{chance.randint(1, 5)}")
    met = "nothing"
    try:
        await command.run(tree.store)
    except StorageFull:
        met = "refused"
    except OutcomeUnknown:
        met = "unsure"
    finally:
        failpoints.arm("")
    if met == "refused":
        await _check_refused(tree, before)
    else:
        await tree.store.recover()
        await tree.check_done(command)
    return met


async def _check_refused(tree: FileTree, before: list[Tree]) -> None:
    """A directory may have been made on the way to what was refused: an audit takes it in."""
    after = tree.trees()
    assert [_files_of(one) for one in after] == [_files_of(one) for one in before]
    async with kept_up(tree.store):
        for mount, old, new in zip(tree.mounts, before, after, strict=True):
            if old != new:
                await audit(tree.store, mount)


def _files_of(tree: Tree) -> Tree:
    return {path: data for path, data in tree.items() if data is not None}


def power_cut(stage: Stage) -> Outcome:
    """F32. What was not synced is lost, in any part and order: all that was acknowledged is there,
    and what was acknowledged as gone is not."""
    cuts = max(stage.events // 2, 1)
    promises = 0
    for number in range(cuts):
        seed = stage.chance.randrange(1 << 32)
        promises += _cut(stage.folder / f"cut-{number}", seed)
    assert promises > cuts
    return Outcome(promises, cuts)


def _cut(root: Path, seed: int) -> int:
    """Says how many paths a promise was kept of."""
    root.mkdir()
    beneath = Beneath(root)
    disk = ForgetfulDisk(beneath.root)
    folder = Folder(beneath, disk)
    folder.staging.found()
    session = Session(folder, disk, root, seed)
    session.play()
    beneath.close()
    left = disk.power_cut(Random(seed))
    lost = [path for path, data in session.promised.items() if left.get(path) != data]
    assert lost == [], f"seed {seed}"
    return len(session.promised)


def rotten(stage: Stage) -> Outcome:
    """F33. One file of a hundred after the other has a bit flipped or its end cut off, with its
    time as it was: each is found by reading it, its bytes are never given out as the file, and
    every other file is whole. Put again it is whole, too."""
    with _serving_files(stage) as files:
        sound = {f"d{n % 10}/f{n}": _random_bytes(stage.chance) for n in range(_FILES)}
        for path, data in sound.items():
            files.stored(path, data)
        hurt = stage.chance.sample(sorted(sound), min(stage.faults, _FILES))
        for number, path in enumerate(hurt, start=1):
            _hurt(files.folder / path, stage.chance)
            assert _found(files, sound) == set(hurt[:number])
        _heal(stage, files, {path: sound[path] for path in hurt})
        assert _found(files, sound) == set()
        asyncio.run(_check(stage, files))
    return _whole(stage, len(hurt))


def _random_bytes(chance: Random) -> bytes:
    return chance.randbytes(chance.choice(_SIZES))


def _hurt(path: Path, chance: Random) -> None:
    times = path.stat()
    chance.choice([_flip, _cut_off])(path, chance.randrange(times.st_size))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def _flip(path: Path, at: int) -> None:
    with open(path, "r+b") as file:
        byte = os.pread(file.fileno(), 1, at)[0]
        os.pwrite(file.fileno(), bytes([byte ^ 1 << at % 8]), at)


def _cut_off(path: Path, at: int) -> None:
    os.truncate(path, at)


def _found(files: Files, sound: dict[str, bytes]) -> set[str]:
    """The files that were refused; every other was given out as it was stored."""
    given = {path: _given(files, path) for path in sound}
    assert all(data in (None, sound[path]) for path, data in given.items())
    return {path for path, data in given.items() if data is None}


def _given(files: Files, path: str) -> bytes | None:
    """None where the answer says that the file is not whole, at its start or by its end."""
    try:
        answer = files.get(path)
    except httpx.RemoteProtocolError:
        return None
    if answer.status_code == 200:
        return answer.content
    named = ("urn:tristore:content-damaged", "urn:tristore:changed-outside")
    assert answer.json()["type"] in named, answer.text
    return None


def _heal(stage: Stage, files: Files, damaged: dict[str, bytes]) -> None:
    """A shorter file is taken for somebody's new version, a rotten one for none: neither is the
    version that was stored, and both can be put again."""
    assert stage.value(_DRIFTS) == len(damaged)
    with stage.part("work", "reconcile"):
        stage.wait_for(_DRIFTS, 0)
    for path, data in damaged.items():
        node = files.node(path)
        assert (node["state"], node["version"]) in [("inconsistent", 2), ("active", 2)]
        assert files.stored(path, data)["version"] == 3


@contextmanager
def _serving_files(stage: Stage) -> Iterator[Files]:
    with stage.serving() as api, _client(api) as client:
        yield Files.make(api, client, stage.folder)


def _client(api: Api) -> httpx.Client:
    headers = api.bearer(*SCOPES)
    return httpx.Client(base_url=api.url, headers=headers, timeout=30, trust_env=False)


async def _check(stage: Stage, files: Files) -> None:
    async with own_store(stage) as store:
        await check(store, await store.mount(ME, files.mount), files.folder)


def _whole(stage: Stage, faults: int) -> Outcome:
    events = told(stage)
    assert events > faults
    return Outcome(events, faults)
