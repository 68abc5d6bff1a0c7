"""`/admin/events`: a page of 100 by type and source over a small and a large log.

The limit is the bare SQL on one connection in the same run. Both are also taken where nothing
matches, which is where a plan that walks the log shows.
"""

import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
from psycopg import sql

from bench.figure import Figure
from tristore.config import child_environment
from tristore.db.migrate import migrate
from tristore.db.queries import load
from tristore.local.postgres import EmbeddedPostgres
from tristore.local.redis import EmbeddedRedis
from tristore.tokens import hashed

_sql = load("bench", "admin_events.sql")
SMALL, LARGE = 100_000, 5_000_000
REQUESTS = 400
CHUNK = 500_000
TOKEN = "tri_bench"
TARGET_MS = 25.0
Params = dict[str, str]


def run(scale: float = 1.0) -> list[Figure]:
    small, large = SMALL, max(2 * SMALL, int(LARGE * scale))
    with _platform() as (url, conn):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=url, headers=headers, trust_env=False) as client:
            figures, before = [], {}
            for size in (small, large):
                _fill(conn, size)
                for name, choose in _QUESTIONS.items():
                    http = _times(lambda given: _ask(client, given), choose)
                    bare = _times(lambda given: _bare(conn, given), choose)
                    before.setdefault(name, http)
                    figures += _figures(name, size, http, bare, before[name])
    return figures


def _figures(
    name: str, size: int, http: list[float], bare: list[float], small: list[float]
) -> list[Figure]:
    title = f"/admin/events {name}, {size:,} rows"
    figures = [
        Figure(f"{title}, p50", _at(http, 0.5), "ms", _at(bare, 0.5), "bare SQL", ""),
        Figure(
            f"{title}, p99", _at(http, 0.99), "ms", _at(bare, 0.99), "bare SQL", f"< {TARGET_MS:g}"
        ),
    ]
    if http is not small:
        grown = "p99 on the small log"
        limit = _at(small, 0.99)
        figures.append(Figure(f"{title}, growth", _at(http, 0.99), "ms", limit, grown, "ratio < 2"))
    return figures


def _pair(chance: random.Random) -> Params:
    kind = chance.randrange(20)
    return {
        "type": f"bench.kind{kind}.made",
        "source": f"source{chance.randrange(5) * 2 + kind % 2}",
    }


def _apart(chance: random.Random) -> Params:
    kind = chance.randrange(20)
    return {
        "type": f"bench.kind{kind}.made",
        "source": f"source{chance.randrange(5) * 2 + (kind + 1) % 2}",
    }


def _unknown(chance: random.Random) -> Params:
    return {"type": f"bench.kind{chance.randrange(20)}.made", "source": "nobody"}


_QUESTIONS: dict[str, Callable[[random.Random], Params]] = {
    "100 by type and source": _pair,
    "nothing matches, both frequent": _apart,
    "nothing matches, source unknown": _unknown,
}


def _ask(client: httpx.Client, given: Params) -> int:
    answer = client.get("/admin/events", params={**given, "limit": 100})
    answer.raise_for_status()
    return len(answer.json()["items"])


def _bare(conn: psycopg.Connection[tuple[object, ...]], given: Params) -> int:
    return len(conn.execute(_sql.bare, given).fetchall())


def _times(ask: Callable[[Params], int], choose: Callable[[random.Random], Params]) -> list[float]:
    """Milliseconds of each request, sorted; the first few only warm caches up."""
    chance = random.Random(1)
    expected = 100 if choose is _pair else 0
    found = []
    for number in range(REQUESTS + 20):
        given = choose(chance)
        begun = time.perf_counter()
        rows = ask(given)
        took = (time.perf_counter() - begun) * 1000
        assert rows == expected, (given, rows)
        found += [took] if number >= 20 else []
    return sorted(found)


def _at(times: list[float], share: float) -> float:
    return times[min(len(times) - 1, int(len(times) * share))]


def _fill(conn: psycopg.Connection[tuple[object, ...]], size: int) -> None:
    """Fills the log up to `size` events, as ingress would have, but by the million."""
    indexes = conn.execute(_sql.secondary_indexes, {}).fetchall()
    for name, _ in indexes:
        conn.execute(sql.SQL("DROP INDEX bus.{}").format(sql.Identifier(str(name))))
    row = conn.execute("SELECT last FROM bus.ingress_head").fetchone()
    first = int(str(row[0])) + 1 if row else 1
    begin = datetime.now(UTC) - timedelta(milliseconds=LARGE)
    for start in range(first, size + 1, CHUNK):
        given = {"first": start, "last": min(start + CHUNK - 1, size), "begin": begin}
        with conn.transaction():
            conn.execute("SELECT last FROM bus.ingress_head FOR UPDATE")
            conn.execute(_sql.load, given)
            conn.execute("UPDATE bus.ingress_head SET last = %s", [given["last"]])
    for _, definition in indexes:
        conn.execute(str(definition).encode())
    conn.execute("VACUUM ANALYZE bus.workflow_events")
    conn.execute("CHECKPOINT")


@contextmanager
def _platform() -> Iterator[tuple[str, psycopg.Connection[tuple[object, ...]]]]:
    with (
        tempfile.TemporaryDirectory(prefix="tristore-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "postgres") as postgres,
        EmbeddedRedis(Path(folder) / "redis") as redis,
    ):
        database_url = postgres.start()
        migrate(database_url)
        with psycopg.connect(database_url, autocommit=True) as conn:
            conn.execute(
                "INSERT INTO bus.tokens (name, hash, scopes) VALUES ('bench', %s, %s)",
                [hashed(TOKEN), ["events:read"]],
            )
            with _api(database_url, redis.start(), folder) as url:
                yield url, conn


@contextmanager
def _api(database_url: str, redis_url: str, folder: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = child_environment(
        {
            "TRISTORE_DATABASE_URL": database_url,
            "TRISTORE_REDIS_URL": redis_url,
            "TRISTORE_DATA_DIR": folder,
            "TRISTORE_PORT": str(port),
        }
    )
    words = [sys.executable, "-m", "tristore", "serve"]
    with open(Path(folder) / "api.log", "wb") as log:
        process = subprocess.Popen(words, env=environment, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/healthz", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the API does not answer")


if __name__ == "__main__":
    for figure in run(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0):
        print(figure.row())
