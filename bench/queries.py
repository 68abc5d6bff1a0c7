"""An hourly downsample over a million rows, and how soon a new event is in an answer."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import httpx
import psycopg
from deltalake import CommitProperties, Transaction, write_deltalake

from bench.figure import Figure
from bench.servers import part, percentile, servers, wait_until
from tristore.config import Settings
from tristore.db.queries import load
from tristore.local.port import pick
from tristore.timestore.snapshot import through_app
from tristore.tokens import hashed

_sql = load("bench", "queries.sql")
_tokens = load("tristore", "tokens.sql")
SIZES = {"100 k": 100_000, "1 M": 1_000_000}
REQUESTS = 200
TOKEN = "tri_bench"
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
WEEK_US = 7 * 86_400 * 10**6
RATE, SECONDS, BATCH = 500, 10, 25
COUNTED = {"sql": "SELECT count(*), sum(size_delta) FROM filestore_activity"}
SCHEMA = [
    {"name": "at", "type": "timestamp"},
    {"name": "station", "type": "string"},
    {"name": "celsius", "type": "double"},
    {"name": "hits", "type": "long"},
]
QUESTION = {
    "downsample": {
        "interval": "1h",
        "aggregates": [
            {"fn": "avg", "column": "celsius"},
            {"fn": "max", "column": "celsius"},
            {"fn": "count"},
        ],
    }
}


def run() -> Iterator[Figure]:
    with servers() as (settings, _), _platform(settings) as client:
        for name, rows in SIZES.items():
            yield from _downsample(settings, client, name, rows)
        yield from _freshness(settings, client)


def _downsample(settings: Settings, client: httpx.Client, name: str, rows: int) -> Iterator[Figure]:
    slug = f"weather_{rows}"
    body = {"slug": slug, "timeColumn": "at", "granularity": "day", "schema": SCHEMA}
    client.post("/timestore/v1/datasets", json=body).raise_for_status()
    bare = _table(settings, slug, rows)

    def ask() -> None:
        answer = client.post(f"/timestore/v1/datasets/{slug}/query", json=QUESTION)
        assert len(answer.raise_for_status().json()["rows"]) == 7 * 24

    taken, limit = _taken(ask), _taken(lambda: bare.execute(_sql.downsampled).fetchall())
    for share, target in ((0.5, "40"), (0.99, "80")):
        yield Figure(
            f"downsample by hour over {name} rows, p{share * 100:.0f}",
            percentile(taken, share),
            "ms",
            percentile(limit, share),
            "bare DuckDB, one file",
            target if rows == max(SIZES.values()) else "-",
        )


def _taken(ask: Callable[[], Any]) -> list[float]:
    for _ in range(5):
        ask()
    found = []
    for _ in range(REQUESTS):
        started = time.perf_counter()
        ask()
        found.append((time.perf_counter() - started) * 1000)
    return found


def _table(settings: Settings, slug: str, rows: int) -> duckdb.DuckDBPyConnection:
    """The dataset as compaction leaves it, and the same rows in one file."""
    with psycopg.connect(str(settings.database_url)) as database:
        found = database.execute("SELECT folder FROM timestore.datasets WHERE slug = %s", [slug])
        ((folder,),) = found.fetchall()
    root = Path(settings.tables_root())
    single = root / f"{slug}.parquet"
    root.mkdir(parents=True, exist_ok=True)
    conn = duckdb.connect(config={"threads": "2"})
    conn.execute("SET TimeZone = 'UTC'")
    begin = int(BEGIN.timestamp()) * 10**6
    text = _sql.weather.format(begin=begin, step=WEEK_US // rows, rows=rows)
    reached = CommitProperties(app_transactions=[Transaction(through_app(folder), 1)])
    write_deltalake(
        root / folder,
        conn.sql(text).to_arrow_table(),
        partition_by=["_partition"],
        commit_properties=reached,
    )
    conn.execute(f"COPY ({text}) TO '{single}' (FORMAT parquet)")
    conn.execute(f"CREATE VIEW weather AS SELECT * FROM read_parquet('{single}')")
    return conn


@dataclass
class Stream:
    """Events at a steady rate; when each number was committed."""

    database_url: str
    committed: dict[int, float] = field(default_factory=dict)
    ended: bool = False

    def run(self) -> None:
        begun = time.perf_counter()
        with psycopg.connect(self.database_url, autocommit=True) as conn:
            for number in range(RATE * SECONDS // BATCH):
                time.sleep(max(0.0, begun + number * BATCH / RATE - time.perf_counter()))
                row = conn.execute(_sql.publish, {"count": BATCH}).fetchone()
                assert row is not None
                self.committed[int(row[0])] = time.perf_counter()
        self.ended = True


def _freshness(settings: Settings, client: httpx.Client) -> Iterator[Figure]:
    """From the commit of an event in the log to an answer that counts it, asked without pause."""
    stream = Stream(str(settings.database_url))
    thread = threading.Thread(target=stream.run)
    seen, late, asked = 0, [], []
    thread.start()
    while not stream.ended or seen < max(stream.committed):
        started = time.perf_counter()
        answer = client.post("/timestore/v1/sql", json=COUNTED).raise_for_status().json()
        now = time.perf_counter()
        asked.append((now - started) * 1000)
        through = answer["throughSequence"]
        assert answer["rows"][0][0] == through
        committed = dict(stream.committed)
        late += [(now - at) * 1000 for n, at in committed.items() if seen < n <= through]
        seen = max([seen, *(n for n in committed if n <= through)])
    thread.join()
    yield Figure(
        f"event in a query answer at {RATE}/s, without the pipeline, p95",
        percentile(late, 0.95),
        "ms",
        percentile(asked, 0.5),
        "one query, p50",
        "300",
    )


@contextmanager
def _platform(settings: Settings) -> Iterator[httpx.Client]:
    settings = settings.model_copy(update={"port": pick()})
    scopes = ["timestore:read", "timestore:write", "timestore:admin"]
    row: dict[str, Any] = {"name": "bench", "hash": hashed(TOKEN), "scopes": scopes}
    row |= dict.fromkeys(("namespaces", "mounts", "datasets", "expires_at"))
    with psycopg.connect(str(settings.database_url), autocommit=True) as conn:
        conn.execute(_tokens.add, row)
    address = f"http://{settings.host}:{settings.port}"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with (
        part(settings, "serve"),
        httpx.Client(base_url=address, headers=headers, timeout=60) as client,
    ):
        wait_until(lambda: _up(client))
        yield client


def _up(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False
