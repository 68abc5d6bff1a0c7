"""Growth over thirty days by hour, and one day of raw activity, beside bare DuckDB over one file.

The tables are made as the pipeline and its compaction leave them: activity in a file a day sorted
by time, growth merged in a file a month sorted by folder. History behind is taken small and large.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import httpx
import psycopg
from deltalake import CommitProperties, Transaction, write_deltalake

from bench.figure import Figure
from bench.servers import part, percentile, servers, wait_until
from tristore.config import Settings
from tristore.db.queries import load
from tristore.local.port import pick
from tristore.timestore import growth, window
from tristore.timestore.growth import Folder
from tristore.timestore.snapshot import through_app
from tristore.timestore.tables import ACTIVITY, GROWTH
from tristore.tokens import hashed

_sql = load("bench", "growth.sql")
_tokens = load("tristore", "tokens.sql")
DAYS = 25
PER_DAY = {"5 M": 200_000, "50 M": 2_000_000}
REQUESTS = 200
TOKEN = "tri_bench"
END = datetime(2026, 3, 31, tzinfo=UTC)
BEGIN = END - timedelta(days=30)
BUSY = "2026-03-20"


@dataclass(frozen=True)
class Bare:
    """DuckDB alone, over one file of each table."""

    conn: duckdb.DuckDBPyConnection

    def growth(self, mount: str) -> None:
        asked = window.of(BEGIN, END, "1h", END)
        folder = Folder(mount, [mount])
        sql = growth.sql(folder, growth.hours(folder))
        self.conn.execute(sql, growth.parameters(folder, asked)).fetchall()

    def busy(self) -> None:
        self.conn.execute(_sql.busy_folders.format(day=BUSY)).fetchall()


def run() -> Iterator[Figure]:
    for name, per_day in PER_DAY.items():
        with servers() as (settings, _), _platform(settings, per_day) as (client, bare):
            yield from _growth(client, bare, name)
            if per_day == max(PER_DAY.values()):
                yield from _busy(client, bare)


def _growth(client: httpx.Client, bare: Bare, name: str) -> Iterator[Figure]:
    times = {"from": BEGIN.isoformat(), "to": END.isoformat(), "bucket": "1h"}

    def ask(number: int) -> None:
        params = {**times, "mount": f"m{number % 4}"}
        answer = client.get("/timestore/v1/storage/growth", params=params)
        assert len(answer.raise_for_status().json()["points"]) == 30 * 24

    taken = _taken(ask)
    limit = _taken(lambda number: bare.growth(f"m{number % 4}"))
    for share, target in ((0.5, "-"), (0.99, "300")):
        yield Figure(
            f"growth, 30 days by hour, {name} changes behind, p{share * 100:.0f}",
            percentile(taken, share),
            "ms",
            percentile(limit, share),
            "bare DuckDB, one file",
            target,
        )


def _busy(client: httpx.Client, bare: Bare) -> Iterator[Figure]:
    body = {"sql": _sql.busy_folders.format(day=BUSY)}

    def ask(_: int) -> None:
        answer = client.post("/timestore/v1/sql", json=body)
        assert len(answer.raise_for_status().json()["rows"]) == 50

    taken, limit = _taken(ask), _taken(lambda _: bare.busy())
    for share, target in ((0.5, "-"), (0.99, "1,000")):
        yield Figure(
            f"raw activity, 2 M rows of one day by folder, p{share * 100:.0f}",
            percentile(taken, share),
            "ms",
            percentile(limit, share),
            "bare DuckDB, one file",
            target,
        )


def _taken(ask: Callable[[int], None]) -> list[float]:
    """Milliseconds of each, after a few that warm up."""
    for number in range(5):
        ask(number)
    found = []
    for number in range(REQUESTS):
        begun = time.perf_counter()
        ask(number)
        found.append((time.perf_counter() - begun) * 1000)
    return found


@contextmanager
def _platform(settings: Settings, per_day: int) -> Iterator[tuple[httpx.Client, Bare]]:
    folder = Path(settings.data_dir)
    tables = folder / "tables"
    with duckdb.connect(config={"threads": "2"}) as conn:
        conn.execute("SET TimeZone = 'UTC'")
        _make(conn, tables, folder, per_day)
        with psycopg.connect(str(settings.database_url), autocommit=True) as database:
            row = {"name": "bench", "hash": hashed(TOKEN), "scopes": ["timestore:read"]}
            limits = dict.fromkeys(("namespaces", "mounts", "datasets", "expires_at"))
            database.execute(_tokens.add, {**row, **limits})
        settings = settings.model_copy(update={"port": pick()})
        headers = {"Authorization": f"Bearer {TOKEN}"}
        url = f"http://127.0.0.1:{settings.port}"
        with (
            part(settings, "serve", TRISTORE_TIMESTORE__ROOT=str(tables)),
            httpx.Client(base_url=url, headers=headers, timeout=60) as client,
        ):
            wait_until(lambda: _answers(client))
            yield client, Bare(conn)


def _make(conn: duckdb.DuckDBPyConnection, tables: Path, folder: Path, per_day: int) -> None:
    for number in range(DAYS):
        day = END - timedelta(days=DAYS - number)
        conn.execute(f"CREATE OR REPLACE TABLE day_rows AS {_sql.activity}", [day, per_day])
        _append(conn.sql("FROM day_rows"), tables / ACTIVITY, "day", ACTIVITY)
        made = "CREATE OR REPLACE TABLE sums AS" if number == 0 else "INSERT INTO sums"
        conn.execute(f"{made} {_sql.growth}")
        if f"{day:%Y-%m-%d}" == BUSY:
            conn.execute(f"COPY day_rows TO '{folder / 'busy.parquet'}'")
    merged = "FROM sums ORDER BY depth, mount, prefix, hour"
    _append(conn.sql(merged), tables / GROWTH, "month", GROWTH)
    conn.execute(f"COPY ({merged}) TO '{folder / 'sums.parquet'}'")
    conn.execute("DROP TABLE day_rows")
    conn.execute("DROP TABLE sums")
    for view, file in ((ACTIVITY, "busy"), (GROWTH, "sums")):
        conn.execute(f"CREATE VIEW {view} AS FROM '{folder / file}.parquet'")


def _append(rows: duckdb.DuckDBPyRelation, table: Path, partition: str, name: str) -> None:
    # The log is empty, and the table says that it holds all of it.
    known = CommitProperties(app_transactions=[Transaction(through_app(name), 0)])
    write_deltalake(
        table,
        rows.to_arrow_table(),
        mode="append",
        partition_by=[partition],
        commit_properties=known,
    )


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False
