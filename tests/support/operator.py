"""A running platform, and clients with the rights a test wants."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx
import psycopg

from tests.support.parts import free_port, part
from tests.support.waiting import wait_until
from tristore.config import Settings
from tristore.tokens import hashed


@contextmanager
def running_api(settings: Settings, *workers: str, port: int | None = None) -> Iterator[str]:
    """The API process and, if asked for, workers; yields the URL once it is ready."""
    settings = settings.model_copy(update={"port": port or free_port()})
    url = f"http://127.0.0.1:{settings.port}"
    with part(settings, "serve"):
        if workers:
            with part(settings, "work", ",".join(workers)):
                wait_until(lambda: _ready(url))
                yield url
        else:
            wait_until(lambda: _ready(url))
            yield url


def token(settings: Settings, scopes: Sequence[str], mounts: list[str] | None = None) -> str:
    text = f"tri_test_{'_'.join(scopes)}_{mounts}"
    with psycopg.connect(str(settings.database_url)) as conn:
        conn.execute(
            "INSERT INTO bus.tokens (name, hash, scopes, mounts) VALUES ('test', %s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            [hashed(text), list(scopes), mounts],
        )
    return text


def client(url: str, settings: Settings, *scopes: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token(settings, scopes)}"}
    return httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False, verify=False)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", trust_env=False, verify=False).status_code == 200
    except httpx.TransportError:
        return False
