"""A bucket on a server that is slow, broken, full of strangers' keys, or hostile."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.support.s3 import S3Server, moto, rclone
from tests.support.tcp_proxy import TcpProxy
from tristore.config import FilestoreSettings, Settings
from tristore.errors import (
    ContentConflict,
    ContentUnreadable,
    MountRefused,
    StorageRefused,
    TristoreError,
    Unavailable,
)
from tristore.filestore.blobs import Blobs, Entry, open_blobs
from tristore.filestore.blobs_s3 import S3Blobs
from tristore.filestore.model import Mount

MIB = 1024 * 1024
LARGE = 17 * MIB


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with moto() as started:
        yield started


@pytest.fixture
async def blobs(server: S3Server, request: pytest.FixtureRequest) -> AsyncIterator[Blobs]:
    mount = S3Blobs(server.open(request.node.name[:60]), prefix=request.node.name[:60])
    yield mount
    await mount.aclose()


def put_raw(server: S3Server, key: str, data: bytes = b"") -> None:
    httpx.put(f"{server.url}/{server.bucket}/{quote(key)}", content=data).raise_for_status()


def port_of(server: S3Server) -> int:
    return int(server.url.rpartition(":")[2])


def uploads(server: S3Server) -> str:
    return httpx.get(f"{server.url}/{server.bucket}?uploads").text


async def stream(size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, 65536):
        yield b"x" * min(65536, size - start)


async def put(blobs: Blobs, path: str, size: int = 3, token: str = "t") -> None:
    await blobs.stage(token, stream(size), path)
    await blobs.publish(token, path)


async def walked(blobs: Blobs) -> list[Entry]:
    return [entry async for batch in blobs.walk() for entry in batch]


async def test_markers_of_folders_are_not_taken_for_files(
    blobs: Blobs, server: S3Server, request: pytest.FixtureRequest
) -> None:
    prefix = request.node.name[:60]
    for key in ("empty/", "full/", "full/f", "both", "both/", "really-empty"):
        put_raw(server, f"{prefix}/{key}")
    assert [(e.path, e.kind) for e in await walked(blobs)] == [
        ("both", "file"),
        ("full/f", "file"),
        ("really-empty", "file"),
    ]


async def test_a_key_that_is_no_path_is_named_as_the_reason(
    blobs: Blobs, server: S3Server, request: pytest.FixtureRequest
) -> None:
    put_raw(server, f"{request.node.name[:60]}/a//b")
    with pytest.raises(StorageRefused, match="rename"):
        await walked(blobs)


async def test_names_that_no_path_of_ours_can_hold_are_told_apart(
    blobs: Blobs, server: S3Server, request: pytest.FixtureRequest
) -> None:
    put_raw(server, f"{request.node.name[:60]}/a\\b", b"1")
    put_raw(server, f"{request.node.name[:60]}/CON/x", b"1")
    assert {e.kind for e in await walked(blobs)} == {"other"}


async def test_an_abandoned_upload_leaves_no_parts_to_be_paid_for(
    blobs: Blobs, server: S3Server
) -> None:
    await blobs.stage("t", stream(LARGE), "abandoned")
    assert "/abandoned</Key>" in uploads(server)
    await blobs.discard("t")
    assert "/abandoned</Key>" not in uploads(server)


@pytest.mark.parametrize("size", [3, LARGE], ids=["small", "large"])
async def test_a_move_cut_short_is_finished_by_the_next(
    blobs: Blobs, server: S3Server, size: int
) -> None:
    await put(blobs, "from", size)
    await blobs.stage_copy("t2", "from", "kept")
    # As a crash between the copy and the removal leaves it.
    bucket = blobs._bucket  # type: ignore[attr-defined]
    await bucket.copy("from", "to")
    looks = await blobs.move("from", "to")
    assert await blobs.stat("to") == Entry("to", "file", looks)
    assert await blobs.stat("from") is None


async def test_an_answer_that_was_lost_is_not_taken_for_a_conflict(server: S3Server) -> None:
    """The write happened, its answer did not arrive, the client tries again and meets itself."""
    with TcpProxy("127.0.0.1", port_of(server)) as proxy:
        bucket = server.open("lost", url=f"http://127.0.0.1:{proxy.port}")
        blobs = S3Blobs(bucket, prefix="lost")
        proxy.cut(b"PUT /", "after", following=b"")
        await blobs.stage("t", stream(3), "f")
        looks = await blobs.publish("t", "f")
        assert proxy.cuts == 1
        assert await blobs.stat("f") == Entry("f", "file", looks)
        await blobs.stage("other", stream(3), "f")
        with pytest.raises(ContentConflict):
            await blobs.publish("other", "f")
        await blobs.aclose()


async def test_a_completion_whose_answer_was_lost_is_found_out(tmp_path: Path) -> None:
    """This server knows nothing of the upload when it is asked to complete it again."""
    with rclone(tmp_path / "s3") as server, TcpProxy("127.0.0.1", port_of(server)) as proxy:
        blobs = S3Blobs(server.open("completed", url=f"http://127.0.0.1:{proxy.port}"))
        await blobs.stage("t", stream(LARGE), "f")
        proxy.cut(b"<CompleteMultipartUpload", "after", following=b"")
        looks = await blobs.publish("t", "f")
        assert proxy.cuts == 1
        assert await blobs.stat("f") == Entry("f", "file", looks)
        await blobs.aclose()


class Answering(ThreadingHTTPServer):
    """Answers every request alike, and counts."""

    def __init__(self, host: str, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        super().__init__((host, 0), _handler(self, status, headers, body))
        self.hits = 0

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_port}"


def _handler(
    server: Answering, status: int, headers: dict[str, str], body: bytes
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            server.hits += 1
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@contextmanager
def answering(
    status: int,
    headers: dict[str, str] | None = None,
    *,
    host: str = "127.0.0.1",
    body: bytes = b"",
) -> Iterator[Answering]:
    with Answering(host, status, headers or {}, body) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


async def everything_fails(blobs: Blobs, error: type[TristoreError]) -> None:
    await blobs.stage("t", stream(3), "f")
    for call in (
        blobs.publish("t", "f"),
        blobs.stat("f"),
        blobs.checksum("f"),
        blobs.read("f"),
        blobs.move("f", "g"),
        blobs.remove("f", "r"),
        blobs.stage("large", stream(LARGE), "large"),
        walked(blobs),
        blobs.probe(),
    ):
        with pytest.raises(error):
            await asyncio.wait_for(call, 30)


@pytest.mark.parametrize("status", [500, 503])
async def test_a_broken_server_is_told_as_unavailable(server: S3Server, status: int) -> None:
    with answering(status) as broken:
        blobs = S3Blobs(server.open(timeout_seconds=0.2, url=broken.url))
        await everything_fails(blobs, Unavailable)
        await blobs.aclose()


async def test_a_server_that_never_answers_is_told_as_unavailable(server: S3Server) -> None:
    # Connections are taken by the system and by nobody else.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        blobs = S3Blobs(server.open(timeout_seconds=0.2, url=url))
        await everything_fails(blobs, Unavailable)
        await blobs.aclose()


async def test_an_absent_server_is_told_as_unavailable(server: S3Server) -> None:
    with answering(200) as gone:
        url = gone.url
    blobs = S3Blobs(server.open(timeout_seconds=0.2, url=url))
    await everything_fails(blobs, Unavailable)
    await blobs.aclose()


async def test_refused_credentials_are_told_apart_from_a_lost_file(server: S3Server) -> None:
    with answering(403) as strict:
        blobs = S3Blobs(server.open(timeout_seconds=1, url=strict.url))
        with pytest.raises((StorageRefused, ContentUnreadable)):
            await blobs.stat("f")
        with pytest.raises(MountRefused):
            await blobs.probe()
        await blobs.aclose()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_leads_nowhere(server: S3Server, status: int) -> None:
    found = {"ETag": '"x"', "Last-Modified": "Sun, 15 Nov 2026 14:45:12 GMT"}
    with answering(200, found, host="127.0.0.2", body=b"secret") as inner:
        with answering(status, {"Location": f"{inner.url}/latest/meta-data"}) as hostile:
            blobs = S3Blobs(server.open(timeout_seconds=0.2, url=hostile.url))
            await blobs.stage("t", stream(3), "f")
            for call in (blobs.read("f"), blobs.stat("f"), blobs.publish("t", "f"), walked(blobs)):
                with pytest.raises(TristoreError):
                    await asyncio.wait_for(call, 30)
            await blobs.aclose()
            assert hostile.hits > 0
        assert inner.hits == 0


def mount(server: S3Server, **config: str) -> Mount:
    place = {"bucket": server.bucket, "endpoint": server.url, "credentials": "env:S3_B", **config}
    rest = {"audit_seconds": None, "last_audit_at": None, "degraded": None}
    made = {"created_at": None, "created_by": "test"}
    return Mount(id=1, name="b", kind="s3", access="readWrite", config=place, **rest, **made)  # type: ignore[arg-type]


async def test_a_mount_opens_by_its_configuration(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment("S3_B").items():
        monkeypatch.setenv(name, value)
    # What the surroundings say of other stores must not lead a mount astray.
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    allowed = Settings(filestore=FilestoreSettings(allowed_endpoints=server.url))
    blobs = await open_blobs(mount(server, prefix="of/the/mount"), allowed)
    await blobs.probe()
    await put(blobs, "f")
    assert await server.open().head("of/the/mount/f") is not None
    await blobs.aclose()
    with pytest.raises(MountRefused, match="ALLOWED_ENDPOINTS"):
        await open_blobs(mount(server), Settings())


async def test_a_bucket_that_is_not_there_is_refused(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in server.environment("S3_B").items():
        monkeypatch.setenv(name, value)
    allowed = Settings(filestore=FilestoreSettings(allowed_endpoints=server.url))
    blobs = await open_blobs(mount(server, bucket="no-such-bucket"), allowed)
    with pytest.raises(MountRefused):
        await blobs.probe()
    await blobs.aclose()
