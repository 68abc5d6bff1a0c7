"""Rows into a dataset over HTTP until they are in its table, beside Spark copying Parquet."""

import io
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.figure import Figure
from bench.servers import part, wait_until
from tests.support.parts import free_port
from tristore.config import Settings
from tristore.db.migrate import migrate
from tristore.local.java import java_home
from tristore.local.postgres import EmbeddedPostgres
from tristore.pipeline.session import PipelineConfig, make_session
from tristore.pipeline.staged import staged_writer
from tristore.tokens import hashed

ARROW_ROWS, ARROW_BODY = 5_000_000, 500_000
JSON_ROWS, JSON_BODY = 500_000, 20_000
WARM = 20_000
BASE = "/timestore/v1"
TOKEN = "tri_bench"
START = datetime(2026, 11, 15, tzinfo=UTC)
SCHEMA = [
    {"name": "at", "type": "timestamp"},
    {"name": "station", "type": "string"},
    {"name": "celsius", "type": "double"},
    {"name": "reading", "type": "long"},
]


@dataclass(frozen=True)
class Bench:
    http: httpx.Client
    spark: SparkSession
    folder: Path

    def make(self, slug: str) -> None:
        body = {"slug": slug, "timeColumn": "at", "granularity": "day", "schema": SCHEMA}
        self.http.post(f"{BASE}/datasets", json=body).raise_for_status()

    def seconds(self, slug: str, bodies: Sequence[bytes], media: str) -> float:
        """From the first byte sent until all rows are in the table; two senders at once."""
        begun = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            ids = list(pool.map(lambda body: self._send(slug, body, media), bodies))
        return wait_until(lambda: all(map(self._committed, ids)), 600) - begun

    def _send(self, slug: str, body: bytes, media: str) -> int:
        headers = {"Content-Type": media}
        answer = self.http.post(f"{BASE}/datasets/{slug}/ingest", content=body, headers=headers)
        return int(answer.raise_for_status().json()["ingestId"])

    def _committed(self, number: int) -> bool:
        time.sleep(0.05)
        return bool(self.http.get(f"{BASE}/ingests/{number}").json()["status"] == "committed")


def run(scale: float = 1.0) -> list[Figure]:
    arrow, rows = int(ARROW_ROWS * scale), int(JSON_ROWS * scale)
    with prepared() as bench:
        bench.make("warm")
        bench.seconds("warm", [in_arrow(table(0, WARM))] * 2, ARROW)
        bench.make("arrow")
        tables = [table(n, min(ARROW_BODY, arrow)) for n in range(0, arrow, ARROW_BODY)]
        quick = arrow / bench.seconds("arrow", [in_arrow(one) for one in tables], ARROW)
        bench.make("json")
        sent = (table(n, min(JSON_BODY, rows)) for n in range(0, rows, JSON_BODY))
        bodies = [in_json(one) for one in sent]
        plain = rows / bench.seconds("json", bodies, "application/json")
        limit = arrow / bare(bench, tables)
    name = "rows into a dataset until committed"
    beside = "Spark, Parquet to Parquet"
    return [
        Figure(f"{name}, {arrow:,} by Arrow", quick, "rows/s", limit, beside, "150,000/s"),
        Figure(f"{name}, {rows:,} by JSON", plain, "rows/s", limit, beside, "30,000/s"),
    ]


ARROW = "application/vnd.apache.arrow.stream"


def table(first: int, count: int) -> pa.Table:
    """A reading each ten milliseconds, of fifty stations."""
    numbers = range(first, first + count)
    start = int(START.timestamp() * 1_000_000)
    times = pa.array([start + n * 10_000 for n in numbers], pa.timestamp("us", "UTC"))
    stations = pa.array([f"station-{n % 50}" for n in numbers])
    celsius = pa.array([(n * 37 % 400) / 10 for n in numbers])
    return pa.table(
        {"at": times, "station": stations, "celsius": celsius, "reading": pa.array(numbers)}
    )


def in_arrow(rows: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_table(rows)
    return out.getvalue()


def in_json(rows: pa.Table) -> bytes:
    found = rows.to_pylist()
    for row in found:
        row["at"] = (row["at"] + timedelta(0)).isoformat()
    return json.dumps({"rows": found}).encode()


def bare(bench: Bench, tables: Sequence[pa.Table]) -> float:
    """Seconds Spark alone takes from Parquet files of the same rows to a partitioned table."""
    folder = bench.folder / "bare"
    (folder / "in").mkdir(parents=True)
    for number, rows in enumerate(tables):
        pq.write_table(rows, folder / "in" / f"{number}.parquet")
    begun = time.perf_counter()
    frame = bench.spark.read.parquet(str(folder / "in"))
    frame = frame.selectExpr("*", "date_format(at, 'yyyy-MM-dd') AS day")
    frame.write.partitionBy("day").parquet(str(folder / "out"))
    seconds = time.perf_counter() - begun
    shutil.rmtree(folder)
    return seconds


@contextmanager
def prepared() -> Iterator[Bench]:
    with (
        tempfile.TemporaryDirectory(prefix="tristore-bench-") as name,
        EmbeddedPostgres(Path(name) / "postgres") as postgres,
    ):
        folder, url = Path(name), postgres.start()
        migrate(url)
        settings = Settings(database_url=url, redis_url="inline", data_dir=folder, port=free_port())
        _add_token(url)
        with (
            part(settings, "serve"),
            _streaming(settings, folder) as spark,
            _client(settings) as http,
        ):
            yield Bench(http, spark, folder)


@contextmanager
def _streaming(settings: Settings, folder: Path) -> Iterator[SparkSession]:
    config = PipelineConfig(
        database_url=str(settings.database_url),
        tables_root=settings.tables_root(),
        checkpoint=folder / "checkpoint",
        java_home=str(java_home(None, folder / "java")),
    )
    spark = make_session(config)
    query = staged_writer(spark, config).trigger(processingTime="1 second").start()
    try:
        yield spark
    finally:
        query.stop()
        spark.stop()


@contextmanager
def _client(settings: Settings) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"http://127.0.0.1:{settings.port}",
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=120,
        trust_env=False,
    ) as http:
        wait_until(lambda: _answers(http))
        yield http


def _answers(http: httpx.Client) -> bool:
    try:
        return http.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


def _add_token(database_url: str) -> None:
    scopes = [f"timestore:{right}" for right in ("read", "write", "admin")]
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "INSERT INTO bus.tokens (name, hash, scopes) VALUES ('bench', %s, %s)",
            [hashed(TOKEN), scopes],
        )
