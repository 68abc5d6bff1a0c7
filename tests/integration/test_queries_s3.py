"""Queries over tables and staged batches that lie on S3."""

import io
from collections.abc import Iterator
from dataclasses import replace

import obstore
import orjson
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from tests.support import log_tables
from tests.support.s3 import S3Server, moto
from tests.support.s3_tables import own_place
from tristore.errors import Unavailable
from tristore.pipeline.s3_files import store
from tristore.timestore import progress
from tristore.timestore.child import Surroundings
from tristore.timestore.place import Place
from tristore.timestore.requests import Answer, Limits, Query, Source
from tristore.timestore.snapshot import Tables, through_app
from tristore.timestore.workers import Workers

COUNTS = "SELECT count(*), count(DISTINCT id), max(ingress_sequence) FROM events"
EVENTS = Source("events", "events", "log", "occurred_at")
COLUMNS = {"at": "timestamp", "n": "long"}
OWN = Source("own", "own-1", "ingest", "at", columns=COLUMNS)


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with moto() as server:
        yield server


@pytest.fixture
def root(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Place:
    return own_place(server, monkeypatch)


def rows(*numbers: int) -> pa.Table:
    times = pa.array([n * 10**6 for n in numbers], pa.timestamp("us", tz="UTC"))
    return pa.table({"at": times, "n": pa.array(numbers, pa.int64())})


def stage(database_url: str, root: Place, number: int, table: pa.Table) -> None:
    """As an ingest leaves a batch: its file, then its row."""
    name = f"_staging/own-1/{number}.parquet"
    content = io.BytesIO()
    pq.write_table(table, content)
    obstore.put(store(root.uri, root.options), name, content.getvalue())
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "INSERT INTO timestore.ingest_batches (id, dataset, file, format, rows, bytes,"
            " schema_version) VALUES (%s, 'own', %s, 'json', %s, 1, 1)",
            [number, name, table.num_rows],
        )


async def test_rows_on_s3_count_once(root: Place, database_url: str) -> None:
    with psycopg.connect(database_url) as conn:
        conn.execute(
            "INSERT INTO timestore.datasets (slug, time_column, granularity, schema, folder,"
            " created_by, updated_by) VALUES ('own', 'at', 'day', '[]', 'own-1', 't', 't')"
        )
    log_tables.publish(database_url, 30)
    log_tables.commit(root, database_url, "events", 12)
    stage(database_url, root, 1, rows(1, 2))
    stage(database_url, root, 2, rows(3))
    workers = Workers(Surroundings(root, database_url, 2, address_space_mb=3072))

    async def ask(source: Source, sql: str) -> tuple[list[object], Answer]:
        answer = await workers.run(Query([source], sql, limits=Limits(seconds=60)))
        return orjson.loads(answer.body)["rows"][0], answer

    try:
        assert (await ask(EVENTS, COUNTS))[0] == [30, 30, 30]
        log_tables.commit(root, database_url, "events", 25)
        counted, answer = await ask(EVENTS, COUNTS)
        assert counted == [30, 30, 30]
        assert answer.meta["tableVersion"] == {"events": 1}

        sums = "SELECT count(*), sum(n) FROM own"
        assert (await ask(OWN, sums))[0] == [3, 6]
        place = root.child("own-1")
        first = rows(1, 2).append_column("_partition", pa.array(["1970-01-01"] * 2))
        write_deltalake(
            place.uri,
            first,
            partition_by=["_partition"],
            storage_options=dict(place.options),
            commit_properties=CommitProperties(
                app_transactions=[Transaction(through_app("own-1"), 1)]
            ),
        )
        assert (await ask(OWN, sums))[0] == [3, 6]
        assert (await ask(OWN, "SELECT max(n) FROM own WHERE n < 3"))[0] == [2]

        grown = replace(OWN, columns={**COLUMNS, "more": "string"})
        stage(database_url, root, 3, rows(4).append_column("more", pa.array(["new"])))
        assert (await ask(grown, "SELECT sum(n), max(more) FROM own"))[0] == [10, "new"]
    finally:
        await workers.aclose()


def test_a_bucket_that_is_away_is_not_taken_for_a_damaged_table(root: Place) -> None:
    options = {**root.options, "aws_endpoint": "http://127.0.0.1:1", "max_retries": "0"}
    nowhere = Place(root.uri, options)
    with pytest.raises(Unavailable, match="does not answer"):
        Tables(nowhere).read("events", "events")
    with pytest.raises(Unavailable, match="does not answer"):
        progress.read(nowhere, "events")
