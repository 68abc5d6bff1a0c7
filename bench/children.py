"""A page of 100 in a directory of 20,000 and of 200,000, and the sums of any directory.

The limit is the bare SQL on one connection in the same run.
"""

import random
import time
from collections.abc import Callable

import httpx
import psycopg

from bench.figure import Figure
from bench.mounted import MOUNT, mounted
from bench.servers import percentile
from tristore.db.queries import load

_sql = load("bench", "children.sql")
SIZES = (20_000, 200_000)
REQUESTS = 300
ROOT = "/filestore/v1/nodes"
Conn = psycopg.Connection[tuple[object, ...]]


def run(scale: float = 1.0) -> list[Figure]:
    with mounted("relay") as platform, platform.client() as client:
        with psycopg.connect(platform.database_url, autocommit=True) as conn:
            return [
                figure
                for size in SIZES
                for figure in _measure(client, conn, max(1000, int(size * scale)))
            ]


def _measure(client: httpx.Client, conn: Conn, size: int) -> list[Figure]:
    directory = _fill(conn, f"d{size}", size)
    cursors, inner = _cursors(client, directory), _inner(conn, directory)
    pages = _times(lambda: _page(client, directory, cursors))
    bare_pages = _times(lambda: _bare(conn, directory))
    sums = _times(lambda: _sum(client, inner))
    bare_sums = _times(lambda: _bare_sum(conn, inner))
    return [
        *_figures(f"children page of 100 in {size:,}", pages, bare_pages, "< 20 ms"),
        *_figures(f"rollup in a tree of {size:,}", sums, bare_sums, "< 5 ms"),
    ]


def _figures(name: str, found: list[float], bare: list[float], target: str) -> list[Figure]:
    return [
        Figure(
            f"{name}, {label}",
            percentile(found, share),
            "ms",
            percentile(bare, share),
            "bare SQL",
            target if share == 0.99 else "",
        )
        for label, share in (("p50", 0.5), ("p99", 0.99))
    ]


def _fill(conn: Conn, name: str, count: int) -> int:
    row = conn.execute(_sql.directory, {"name": name, "mount": MOUNT}).fetchone()
    assert row is not None
    given = {"directory": int(str(row[0])), "count": count}
    conn.execute(_sql.fill, given)
    conn.execute(_sql.sums, given)
    conn.execute("VACUUM ANALYZE filestore.nodes, filestore.rollups")
    return int(str(row[0]))


def _cursors(client: httpx.Client, directory: int) -> list[str]:
    """Where pages begin; walked once, so that any of them can be asked for."""
    found, cursor = [], None
    for _ in range(200):
        params = {"limit": 1000, **({"cursor": cursor} if cursor else {})}
        cursor = client.get(f"{ROOT}/{directory}/children", params=params).json()["nextCursor"]
        if cursor is None:
            break
        found.append(cursor)
    return found[:-1] or found


def _page(client: httpx.Client, directory: int, cursors: list[str]) -> None:
    params = {"limit": 100, "cursor": random.choice(cursors)}
    answer = client.get(f"{ROOT}/{directory}/children", params=params)
    assert len(answer.json()["items"]) == 100, answer.text[:300]


def _bare(conn: Conn, directory: int) -> None:
    given = {"directory": directory, "after": f"{random.randrange(500):08}"}
    assert len(conn.execute(_sql.bare, given).fetchall()) == 100


def _inner(conn: Conn, directory: int) -> list[int]:
    query = "SELECT id FROM filestore.nodes WHERE parent_id = %s AND kind = 'directory' LIMIT 50"
    found = conn.execute(query, [directory]).fetchall()
    return [directory, *(int(str(row[0])) for row in found)]


def _sum(client: httpx.Client, directories: list[int]) -> None:
    answer = client.get(f"{ROOT}/{random.choice(directories)}")
    assert answer.json()["rollup"]["files"] >= 32, answer.text[:300]


def _bare_sum(conn: Conn, directories: list[int]) -> None:
    conn.execute(_sql.bare_sum, {"directory": random.choice(directories)}).fetchone()


def _times(ask: Callable[[], None]) -> list[float]:
    """Milliseconds of each; the first few only warm caches up."""
    found = []
    for number in range(REQUESTS + 20):
        begun = time.perf_counter()
        ask()
        if number >= 20:
            found.append((time.perf_counter() - begun) * 1000)
    return found
