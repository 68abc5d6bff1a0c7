"""Metastore searches over a small and a large namespace, each beside the bare SQL of the same page.

The compound search (a metadata value, a range of numbers and a tag) matches one record in a
thousand. It is taken without and with a declared index for the numbers.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg

from bench.figure import Figure
from bench.servers import part, percentile, servers, wait_until
from tristore.db.queries import load
from tristore.local.port import pick
from tristore.tokens import hashed

_sql = load("bench", "metastore_search.sql")
SMALL, LARGE = 100_000, 1_000_000
REQUESTS = 300
CHUNK = 100_000
TOKEN = "tri_bench"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
Given = dict[str, Any]
Bare = psycopg.Connection[tuple[object, ...]]


@dataclass(frozen=True)
class Question:
    name: str
    choose: Callable[[random.Random], Given]
    body: Callable[[Given], Given]
    bare: str
    target: dict[int, str]


def _compound(chance: random.Random) -> Given:
    low = chance.randrange(900)
    given = {"kind": f"kind{chance.randrange(10)}", "tag": f"tag{chance.randrange(10)}"}
    return {**given, "low": low, "high": low + 99}


def _compound_body(given: Given) -> Given:
    leaves = [
        {"field": "metadata.kind", "op": "eq", "value": given["kind"]},
        {"field": "metadata.size", "op": "between", "value": [given["low"], given["high"]]},
        {"field": "tags", "op": "array_contains", "value": given["tag"]},
    ]
    return {"filter": {"and": leaves}}


def _sorted(field: str, direction: str) -> Callable[[Given], Given]:
    return lambda given: {"sort": [{"field": field, "direction": direction}]}


def _nothing(chance: random.Random) -> Given:
    return {}


COMPOUND = {SMALL: "< 15", LARGE: "< 50"}
FIRST_PAGE = {SMALL: "< 30", LARGE: "< 30"}
NO_TARGET: dict[int, str] = {}
BEFORE = (
    Question("compound search, no index", _compound, _compound_body, "compound", NO_TARGET),
    Question("sort by time", _nothing, _sorted("updatedAt", "desc"), "by_time", FIRST_PAGE),
)
AFTER = (
    Question("compound search, index declared", _compound, _compound_body, "compound", COMPOUND),
    Question("sort by metadata", _nothing, _sorted("metadata.size", "asc"), "by_size", FIRST_PAGE),
)


def run() -> list[Figure]:
    figures: list[Figure] = []
    with servers() as (settings, _):
        settings = settings.model_copy(update={"port": pick()})
        with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
            _token(conn)
            for size in (SMALL, LARGE):
                _declare(conn, indexed=False)
                _fill(conn, size)
                figures += _asked(settings, conn, size, BEFORE)
                _declare(conn, indexed=True)
                figures += _asked(settings, conn, size, AFTER)
    return figures


def _asked(settings: Any, conn: Bare, size: int, questions: tuple[Question, ...]) -> list[Figure]:
    with part(settings, "serve"), _client(settings.port) as client:
        wait_until(lambda: _answers(client))
        wait_until(lambda: _indexes_settled(conn))
        conn.execute("CHECKPOINT")
        return [figure for one in questions for figure in _figures(client, conn, size, one)]


def _figures(client: httpx.Client, conn: Bare, size: int, one: Question) -> list[Figure]:
    http = _times(one, lambda given: _ask(client, one.body(given)))
    bare = _times(one, lambda given: _bare(conn, one.bare, given))
    title, found = f"metastore {one.name}, {size:,} records", []
    for share, name in ((0.5, "p50"), (0.99, "p99")):
        target = one.target.get(size, "") if name == "p99" else ""
        value, limit = percentile(http, share), percentile(bare, share)
        found.append(Figure(f"{title}, {name}", value, "ms", limit, "bare SQL", target))
    return found


def _times(one: Question, ask: Callable[[Given], int]) -> list[float]:
    """Milliseconds of each request; the first few only warm caches up."""
    chance, found = random.Random(1), []
    for number in range(REQUESTS + 20):
        given = one.choose(chance)
        begun = time.perf_counter()
        rows = ask(given)
        took = (time.perf_counter() - begun) * 1000
        assert rows == 100, (given, rows)
        found += [took] if number >= 20 else []
    return found


def _ask(client: httpx.Client, body: Given) -> int:
    answer = client.post("/metastore/v1/records/search", json={"namespace": "bench", **body})
    answer.raise_for_status()
    return len(answer.json()["items"])


def _bare(conn: Bare, name: str, given: Given) -> int:
    return len(conn.execute(getattr(_sql, name), given, prepare=False).fetchall())


def _client(port: int) -> httpx.Client:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False)


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def _token(conn: Bare) -> None:
    given = [hashed(TOKEN), ["metastore:read"]]
    conn.execute("INSERT INTO bus.tokens (name, hash, scopes) VALUES ('bench', %s, %s)", given)
    conn.execute(_sql.namespace)


def _declare(conn: Bare, *, indexed: bool) -> None:
    if indexed:
        conn.execute(_sql.declare)
    else:
        conn.execute("UPDATE metastore.namespaces SET indexes = '[]'")


def _indexes_settled(conn: Bare) -> bool:
    """As many whole indexes as are declared, two for each path."""
    made = conn.execute(
        "SELECT count(*) FILTER (WHERE i.indisvalid), count(*) FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indexrelid WHERE starts_with(c.relname, 'declared_')"
    ).fetchone()
    wanted = conn.execute(
        "SELECT 2 * sum(jsonb_array_length(indexes)) FROM metastore.namespaces"
    ).fetchone()
    assert made is not None and wanted is not None
    return int(str(made[0])) == int(str(made[1])) == int(str(wanted[0]))


def _fill(conn: Bare, size: int) -> None:
    row = conn.execute("SELECT count(*) FROM metastore.records").fetchone()
    assert row is not None
    for first in range(int(str(row[0])), size, CHUNK):
        last = min(first + CHUNK, size) - 1
        conn.execute(_sql.load, {"first": first, "last": last, "begin": BEGIN})
    conn.execute("VACUUM ANALYZE metastore.records")


if __name__ == "__main__":
    for figure in run():
        print(figure.row())
