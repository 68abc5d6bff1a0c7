"""Real S3 servers on loopback: moto, which obeys conditions, and rclone, which ignores them."""

import re
import subprocess
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import psutil

from tests.support.waiting import wait_until
from tristore.config import S3Credentials
from tristore.filestore.bucket import Bucket, Place
from tristore.filestore.endpoints import parse

_SCRIPTS = Path(sysconfig.get_path("scripts"))
_PORT = re.compile(r"http://127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class S3Server:
    url: str
    bucket: str
    credentials: S3Credentials
    obeys_conditions: bool

    def place(self, prefix: str = "", timeout_seconds: float = 10, url: str | None = None) -> Place:
        endpoint = parse(url or self.url)
        credentials, seconds = self.credentials, timeout_seconds
        return Place(endpoint, "us-east-1", self.bucket, prefix, credentials, seconds)

    def open(self, prefix: str = "", timeout_seconds: float = 10, url: str | None = None) -> Bucket:
        return Bucket(self.place(prefix, timeout_seconds, url))

    def environment(self, name: str) -> dict[str, str]:
        """What `credentials: env:<name>` needs."""
        key, secret, _ = self.credentials
        return {f"{name}_ACCESS_KEY_ID": key, f"{name}_SECRET_ACCESS_KEY": secret}


@contextmanager
def moto() -> Iterator[S3Server]:
    command = [str(_SCRIPTS / "moto_server"), "-H", "127.0.0.1", "-p", "0"]
    with _running(command) as url:
        server = S3Server(url, f"bucket-{uuid4().hex}", S3Credentials("k", "s", None), True)
        httpx.put(f"{url}/{server.bucket}").raise_for_status()
        yield server


@contextmanager
def rclone(folder: Path) -> Iterator[S3Server]:
    key, secret = uuid4().hex, uuid4().hex
    bucket = f"bucket-{uuid4().hex}"
    (folder / bucket).mkdir(parents=True)
    command = [str(_SCRIPTS / "rclone"), "serve", "s3", str(folder), "--addr", "127.0.0.1:0"]
    command += ["--auth-key", f"{key},{secret}", "--config", str(folder.parent / "rclone.conf")]
    with _running(command) as url:
        yield S3Server(url, bucket, S3Credentials(key, secret, None), False)


@contextmanager
def _running(command: list[str]) -> Iterator[str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield _address(process)
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _address(process: "subprocess.Popen[str]") -> str:
    """Where it says it listens, and where indeed nobody but this process does."""
    said: list[str] = []

    def listen() -> None:
        for line in process.stdout or ():
            said.extend(match.group() for match in [_PORT.search(line)] if match)

    # Read to the end: a full pipe would stop the server.
    threading.Thread(target=listen, daemon=True).start()
    url = wait_until(lambda: said[0] if said else None)
    wait_until(_listens(process.pid, int(url.rpartition(":")[2])))
    return url


def _listens(pid: int, port: int) -> Callable[[], bool]:
    def ask() -> bool:
        found = psutil.Process(pid).net_connections("tcp")
        return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in found)

    return ask
