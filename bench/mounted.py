"""A running platform with one local mount, for measurements of the filestore."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from bench.servers import part, servers, wait_until
from tristore.config import Settings
from tristore.local.port import pick
from tristore.tokens import hashed

MOUNT = "bench"
TOKEN = "tri_bench"
_SCOPES = ["filestore:read", "filestore:write", "filestore:admin"]


@dataclass(frozen=True, slots=True)
class Mounted:
    settings: Settings
    root: Path
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def database_url(self) -> str:
        return str(self.settings.database_url)

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, timeout=120)

    def backlog(self) -> int:
        """Events that are not in the log yet."""
        with psycopg.connect(self.database_url) as conn:
            query = "SELECT count(*) FROM bus.outbox WHERE state <> 'done'"
            row = conn.execute(query).fetchone()
        return int(row[0]) if row else 0


@contextmanager
def mounted(workers: str = "relay,ingress") -> Iterator[Mounted]:
    with servers() as (settings, _), tempfile.TemporaryDirectory(prefix="tristore-mount-") as root:
        settings = settings.model_copy(update={"port": pick()})
        with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
            conn.execute(
                "INSERT INTO bus.tokens (name, hash, scopes) VALUES ('bench', %s, %s)",
                [hashed(TOKEN), _SCOPES],
            )
        with part(settings, "serve") as api, part(settings, "work", workers):
            found = Mounted(settings, Path(root), api.pid)
            wait_until(lambda: _answers(found.url))
            with found.client() as client:
                spec = {"name": MOUNT, "kind": "local", "root": root}
                client.post("/filestore/v1/mounts", json=spec).raise_for_status()
            yield found


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
