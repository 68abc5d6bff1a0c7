"""What an idle WebSocket reader costs the API process, and what that process weighs at rest."""

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

from bench.figure import Figure
from bench.servers import part, servers, wait_until
from tristore import tokens
from tristore.config import Settings
from tristore.db.pool import make_pool
from tristore.local.port import pick

READERS = 1000
WARM = 20
MIB = 1024 * 1024


def run(scale: float = 1.0) -> list[Figure]:
    count = max(100, int(READERS * scale))
    _allow_files(count * 2 + 500)
    with servers() as (settings, _):
        settings = settings.model_copy(update={"port": pick()})
        many = {"TRISTORE_HTTP__SOCKETS_PER_TOKEN": str(count * 2)}
        with part(settings, "serve", **many) as process:
            wait_until(lambda: _answers(settings.port))
            headers = {"Authorization": f"Bearer {asyncio.run(_token(settings))}"}
            address = f"ws://127.0.0.1:{settings.port}/ws"
            rest, each = asyncio.run(measure(process.pid, address, headers, count))
    with _bare_server() as (pid, address):
        bare_rest, bare_each = asyncio.run(measure(pid, address, {}, count))
    named = "a bare server of the WebSocket library"
    return [
        Figure("an idle WebSocket reader", each, "KiB", bare_each, named, "50 KiB"),
        Figure("API process at rest", rest, "MiB", bare_rest, named, "150 MiB"),
    ]


async def measure(
    pid: int, address: str, headers: dict[str, str], count: int
) -> tuple[float, float]:
    """MiB at rest, KiB per reader; a few readers come and go first, so that code is loaded."""
    process = psutil.Process(pid)
    warm = [await _open(address, headers) for _ in range(WARM)]
    await asyncio.gather(*(reader.close() for reader in warm))
    await asyncio.sleep(0.5)
    before = process.memory_info().rss
    readers = [await _open(address, headers) for _ in range(count)]
    await asyncio.sleep(2)
    after = process.memory_info().rss
    await asyncio.gather(*(reader.close() for reader in readers))
    return before / MIB, (after - before) / count / 1024


async def _open(address: str, headers: dict[str, str]) -> ClientConnection:
    reader = await connect(address, additional_headers=headers, compression=None)
    await reader.recv()
    return reader


async def _token(settings: Settings) -> str:
    async with make_pool(str(settings.database_url), name="bench", max_size=1) as pool:
        async with pool.connection() as conn:
            return await tokens.create(conn, "bench", ["events:read"])


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def _bare_server() -> Iterator[tuple[int, str]]:
    port = pick()
    command = [sys.executable, "-m", "bench.idle_sockets", str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port))
        yield process.pid, f"ws://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(10)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def bare(port: int) -> None:
    async def hello(reader: ServerConnection) -> None:
        await reader.send("{}")
        await reader.wait_closed()

    async with serve(hello, "127.0.0.1", port, compression=None) as server:
        await server.serve_forever()


def _allow_files(count: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(count, 1024), most), most))


if __name__ == "__main__":
    asyncio.run(bare(int(sys.argv[1])))
