"""One suite over every backend of a mount: a folder, and buckets on two real S3 servers."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.s3 import S3Server, moto, rclone
from tristore.errors import (
    ContentConflict,
    ContentGone,
    InvalidPath,
    MountRefused,
    ReadOnly,
    StagingLost,
    TooLarge,
)
from tristore.filestore.beneath import Beneath
from tristore.filestore.blobs import Blobs, Entry, Fingerprint
from tristore.filestore.blobs_local import LocalBlobs
from tristore.filestore.blobs_s3 import S3Blobs

MIB = 1024 * 1024
# Larger than what an S3 mount holds in memory, with a part that is not full.
LARGE = 17 * MIB + 5
# rclone obeys no condition: it is here for streams and sizes.
CAREFUL = ["local", "moto"]


@pytest.fixture(scope="module")
def moto_server() -> Iterator[S3Server]:
    with moto() as server:
        yield server


@pytest.fixture(scope="module")
def rclone_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with rclone(tmp_path_factory.mktemp("rclone") / "s3") as server:
        yield server


Open = Callable[..., Blobs]


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same mount as often as asked, as different processes would."""
    kind: str = request.param
    prefix = uuid4().hex

    def open_(*, writable: bool = True) -> Blobs:
        if kind == "local":
            return LocalBlobs(Beneath(tmp_path), writable=writable)
        server: S3Server = request.getfixturevalue(f"{kind}_server")
        return S3Blobs(server.open(prefix), prefix=prefix, writable=writable)

    return open_


@pytest.fixture
async def blobs(opened: Open) -> AsyncIterator[Blobs]:
    mount = opened()
    if mount.supports_directories:
        await mount.probe()
    yield mount
    await mount.aclose()


every = pytest.mark.parametrize("opened", [*CAREFUL, "rclone"], indirect=True)
careful = pytest.mark.parametrize("opened", CAREFUL, indirect=True)


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def large(size: int = LARGE) -> AsyncIterator[bytes]:
    chunk = bytes(range(256)) * 256
    for start in range(0, size, len(chunk)):
        yield chunk[: min(len(chunk), size - start)]


async def put(blobs: Blobs, path: str, data: bytes) -> Fingerprint:
    token = uuid4().hex
    await blobs.stage(token, stream(data), path)
    return await blobs.publish(token, path)


async def content(blobs: Blobs, path: str, start: int = 0, stop: int | None = None) -> bytes:
    _, pieces = await blobs.read(path, start, stop)
    return b"".join([piece async for piece in pieces])


async def entries(walk: AsyncIterator[list[Entry]]) -> list[Entry]:
    return [entry async for batch in walk for entry in batch]


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@every
async def test_content_comes_back_as_it_was_put(blobs: Blobs) -> None:
    staged = await blobs.stage("t", stream(b"hello ", b"", b"world"), "a/b/c.txt")
    assert (staged.size, staged.checksum) == (11, sha256(b"hello world"))
    looks = await blobs.publish("t", "a/b/c.txt")
    assert await content(blobs, "a/b/c.txt") == b"hello world"
    assert await blobs.checksum("a/b/c.txt") == (sha256(b"hello world"), looks)
    assert await blobs.stat("a/b/c.txt") == Entry("a/b/c.txt", "file", looks)
    assert [e for e in await entries(blobs.walk()) if e.kind == "file"] == [
        Entry("a/b/c.txt", "file", looks)
    ]


@every
@pytest.mark.parametrize("size", [0, 1, MIB, 8 * MIB, 8 * MIB + 1, LARGE])
async def test_any_size_streams_through(blobs: Blobs, size: int) -> None:
    staged = await blobs.stage("t", large(size), "f")
    assert staged.size == size
    assert (await blobs.publish("t", "f")).size == size
    assert (await blobs.checksum("f"))[0] == staged.checksum


@every
async def test_staged_content_is_invisible_until_it_is_published(blobs: Blobs) -> None:
    await blobs.stage("small", stream(b"1"), "small")
    await blobs.stage("large", large(), "large")
    assert await blobs.stat("small") is None and await blobs.stat("large") is None
    assert await entries(blobs.walk()) == []
    await blobs.publish("small", "small")
    await blobs.publish("large", "large")
    assert [e.path for e in await entries(blobs.walk())] == ["large", "small"]


@every
async def test_a_range_is_read_exactly(blobs: Blobs) -> None:
    await blobs.stage("t", large(3 * MIB), "f")
    await blobs.publish("t", "f")
    whole = b"".join([chunk async for chunk in large(3 * MIB)])
    for start, stop in [(0, 1), (5, 5), (MIB - 1, MIB + 1), (3 * MIB - 1, None), (9, 2 * MIB)]:
        assert await content(blobs, "f", start, stop) == whole[start:stop]
    assert await content(blobs, "f", 3 * MIB) == b""


@every
async def test_a_stream_that_breaks_leaves_nothing(blobs: Blobs) -> None:
    async def broken(size: int) -> AsyncIterator[bytes]:
        async for chunk in large(size):
            yield chunk
        raise TooLarge("enough")

    for size in (10, LARGE):
        with pytest.raises(TooLarge):
            await blobs.stage("t", broken(size), "f")
        with pytest.raises(StagingLost):
            await blobs.publish("t", "f")
    assert await blobs.stat("f") is None
    # The token is free again.
    await blobs.stage("t", stream(b"1"), "f")


@every
async def test_a_cancelled_upload_leaves_nothing(blobs: Blobs) -> None:
    received = asyncio.Event()

    async def hanging() -> AsyncIterator[bytes]:
        async for chunk in large():
            yield chunk
        received.set()
        await asyncio.Event().wait()

    upload = asyncio.create_task(blobs.stage("t", hanging(), "f"))
    await asyncio.wait_for(received.wait(), 60)
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    with pytest.raises(StagingLost):
        await blobs.publish("t", "f")
    assert await entries(blobs.walk()) == []


@every
async def test_discarded_content_cannot_be_published(blobs: Blobs) -> None:
    await blobs.stage("small", stream(b"1"), "f")
    await blobs.stage("large", large(), "f")
    for token in ("small", "large", "never"):
        await blobs.discard(token)
        await blobs.discard(token)
        with pytest.raises(StagingLost):
            await blobs.publish(token, "f")


@careful
@pytest.mark.parametrize("size", [3, LARGE])
async def test_nothing_is_replaced_that_was_not_expected(blobs: Blobs, size: int) -> None:
    await put(blobs, "f", b"stranger's")
    await blobs.stage("t", large(size), "f")
    with pytest.raises(ContentConflict):
        await blobs.publish("t", "f")
    assert await content(blobs, "f") == b"stranger's"


@careful
@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_version_replaces_only_the_one_it_was_made_from(blobs: Blobs, size: int) -> None:
    first = await put(blobs, "f", b"one")
    await blobs.stage("t", stream(b"two"), "f")
    second = await blobs.publish("t", "f", replaces=first)
    await blobs.stage("late", large(size), "f")
    with pytest.raises(ContentConflict):
        await blobs.publish("late", "f", replaces=first)
    assert await content(blobs, "f") == b"two"
    # What was refused is still staged, and fits the version that is there.
    assert (await blobs.publish("late", "f", replaces=second)).size == size


@careful
async def test_a_version_does_not_replace_what_is_gone(blobs: Blobs) -> None:
    first = await put(blobs, "f", b"one")
    await blobs.remove("f", "r")
    await blobs.stage("t", stream(b"two"), "f")
    with pytest.raises(ContentConflict):
        await blobs.publish("t", "f", replaces=first)
    assert await blobs.stat("f") is None


@careful
async def test_of_many_creators_one_wins(blobs: Blobs) -> None:
    tokens = [f"t{n}" for n in range(20)]
    await asyncio.gather(*(blobs.stage(t, stream(t.encode()), "f") for t in tokens))
    done = await asyncio.gather(*(blobs.publish(t, "f") for t in tokens), return_exceptions=True)
    winners = [t for t, result in zip(tokens, done, strict=True) if isinstance(result, Fingerprint)]
    losers = [result for result in done if isinstance(result, ContentConflict)]
    assert len(winners) == 1 and len(losers) == 19
    assert await content(blobs, "f") == winners[0].encode()


@careful
@pytest.mark.parametrize("size", [3, LARGE])
async def test_another_process_learns_whether_it_was_published(
    opened: Open, blobs: Blobs, size: int
) -> None:
    await blobs.stage("t", large(size), "f")
    looks = await blobs.publish("t", "f")
    other = opened()
    try:
        if other.supports_directories:
            with pytest.raises(StagingLost):
                await other.publish("t", "f")
            assert await other.stat("f") == Entry("f", "file", looks)
        else:
            assert await other.publish("t", "f") == looks
        with pytest.raises(StagingLost):
            await other.publish("other", "f")
    finally:
        await other.aclose()


@every
@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_copy_equals_its_source(blobs: Blobs, size: int) -> None:
    staged = await blobs.stage("t", large(size), "from")
    await blobs.publish("t", "from")
    copied = await blobs.stage_copy("c", "from", "x/to")
    assert copied.size == size and copied.checksum in (staged.checksum, None)
    assert await blobs.stat("x/to") is None
    looks = await blobs.publish("c", "x/to")
    assert await blobs.checksum("x/to") == (staged.checksum, looks)
    with pytest.raises(ContentGone):
        await blobs.stage_copy("d", "nowhere", "to")


@every
@pytest.mark.parametrize("size", [3, LARGE])
async def test_a_file_moves_without_replacing(blobs: Blobs, size: int) -> None:
    staged = await blobs.stage("t", large(size), "a")
    await blobs.publish("t", "a")
    looks = await blobs.move("a", "d/b")
    assert await blobs.stat("a") is None
    assert await blobs.checksum("d/b") == (staged.checksum, looks)
    await put(blobs, "c", b"in the way")
    with pytest.raises(ContentConflict):
        await blobs.move("d/b", "c")
    with pytest.raises(ContentGone):
        await blobs.move("a", "e")
    assert await content(blobs, "c") == b"in the way"
    assert (await blobs.checksum("d/b"))[0] == staged.checksum


@every
async def test_a_file_is_removed_once_and_only_if_it_is_the_one(blobs: Blobs) -> None:
    old = await put(blobs, "f", b"one")
    await blobs.remove("f", "r1", old)
    assert await blobs.stat("f") is None
    await blobs.remove("f", "r1", old)
    await put(blobs, "f", b"something else")
    with pytest.raises(ContentConflict):
        await blobs.remove("f", "r2", old)
    assert await content(blobs, "f") == b"something else"
    await blobs.remove("nowhere/at/all", "r3")


@every
async def test_a_walk_is_in_the_order_of_paths_and_resumes(blobs: Blobs) -> None:
    paths = ["a", "b-c", "b.txt", "b/1", "b/2/x", "b/2-x", "b/ü", "c/日本", "c d/#%20&+?", "é"]
    for path in paths:
        await put(blobs, path, path.encode())
    found = [entry.path for entry in await entries(blobs.walk())]
    assert found == sorted(found) and set(paths) <= set(found)
    for after in (*found, "b/", "b/2", "zzz"):
        rest = [entry.path for entry in await entries(blobs.walk(after=after))]
        assert rest == [path for path in found if path > after]
    below = [entry.path for entry in await entries(blobs.walk("b"))]
    assert below == [path for path in found if path.startswith("b/")]
    assert await entries(blobs.walk("nothing")) == []


@every
async def test_a_directory_lists_what_lies_in_it(blobs: Blobs) -> None:
    for path in ("d/b", "d/a/x", "d/a-b", "e"):
        await put(blobs, path, b"1")
    found = await entries(blobs.list_directory("d"))
    assert [(e.path, e.kind) for e in found] == [
        ("d/a", "directory"),
        ("d/a-b", "file"),
        ("d/b", "file"),
    ]
    assert [e.path for e in await entries(blobs.list_directory())] == ["d", "e"]


@every
async def test_what_is_not_there_is_told_as_gone(blobs: Blobs) -> None:
    await put(blobs, "f", b"1")
    for path in ("nothing", "no/thing", "f/below"):
        assert await blobs.stat(path) is None
        with pytest.raises((ContentGone, ContentConflict)):
            await blobs.read(path)


@every
async def test_a_sweep_forgets_what_was_abandoned_and_keeps_what_is_open(blobs: Blobs) -> None:
    for token in ("left", "kept"):
        await blobs.stage(token, stream(b"1"), token)
    assert await blobs.sweep(3600, set()) == 0
    await asyncio.sleep(0.02)  # older than nothing: the clock of files has a grain
    assert await blobs.sweep(0.01, {"kept"}) == 1
    await blobs.publish("kept", "kept")
    with pytest.raises(StagingLost):
        await blobs.publish("left", "left")


WRITES: list[Callable[[Blobs], Awaitable[object]]] = [
    lambda b: b.stage("t", stream(b"1"), "f"),
    lambda b: b.stage_copy("t", "f", "g"),
    lambda b: b.publish("t", "f"),
    lambda b: b.make_directory("d"),
    lambda b: b.move("f", "g"),
    lambda b: b.remove("f", "t"),
]


@every
async def test_an_observed_mount_is_only_read(opened: Open, blobs: Blobs) -> None:
    await put(blobs, "f", b"1")
    observed = opened(writable=False)
    try:
        await observed.probe()
        for write in WRITES:
            with pytest.raises(ReadOnly):
                await write(observed)
        assert await content(observed, "f") == b"1"
        assert await observed.sweep(0, set()) == 0
    finally:
        await observed.aclose()


@careful
async def test_a_sound_store_passes_the_probe_and_keeps_nothing_of_it(blobs: Blobs) -> None:
    await blobs.probe()
    assert await entries(blobs.walk()) == []


@pytest.mark.parametrize("opened", ["rclone"], indirect=True)
async def test_a_store_that_ignores_conditions_is_refused(blobs: Blobs) -> None:
    with pytest.raises(MountRefused, match="ignores conditions"):
        await blobs.probe()


@careful
async def test_a_name_too_long_for_the_store_is_refused(blobs: Blobs) -> None:
    path = "/".join(["x" * 250] * 5) if not blobs.supports_directories else "é" * 200
    with pytest.raises(InvalidPath):
        await blobs.stage("t", stream(b"1"), path)
        await blobs.publish("t", path)
