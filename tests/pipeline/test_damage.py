"""A flipped bit or a torn file of a table is noticed when read, and never makes other rows."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.filestore_story import story
from tristore.errors import TableDamaged
from tristore.pipeline import catalogue, jobs
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.logrows import LogRows
from tristore.timestore.offer import Offers
from tristore.timestore.query import Engine
from tristore.timestore.query_api import source
from tristore.timestore.requests import Query
from tristore.timestore.tail import LogTail

# Spark takes its time on a busy machine.
pytestmark = pytest.mark.timeout(400)
FLIPS = 12
ALL_EVENTS = "SELECT * FROM events ORDER BY ingress_sequence"


@contextmanager
def changed(file: Path, content: bytes) -> Iterator[None]:
    before = file.read_bytes()
    file.write_bytes(content)
    yield
    file.write_bytes(before)


def flipped(content: bytes, bit: int) -> bytes:
    found = bytearray(content)
    found[bit // 8] ^= 1 << bit % 8
    return bytes(found)


class Reader:
    """A worker that has seen nothing yet, without its process."""

    def __init__(self, config: PipelineConfig, log: LogRows) -> None:
        self._config = config
        self._log = log

    def rows(self, table: str, sql: str) -> Any:
        engine = Engine(Offers(self._config.tables, LogTail(self._log), 2))
        asked = Query([source(catalogue.find(self._config, table))], sql)
        return orjson.loads(engine.run(asked).body)["rows"]

    def events(self) -> Any:
        return self.rows("events", ALL_EVENTS)

    def activity(self) -> Any:
        return self.rows("filestore_activity", "SELECT count(*) FROM filestore_activity")


@pytest.fixture
def reader(spark: SparkSession, config: PipelineConfig) -> Iterator[Reader]:
    story(config.database_url)
    log_rows.append(config.database_url, 40)
    jobs.run_available(config, spark)
    log_rows.append(config.database_url, 40)
    jobs.run_available(config, spark)
    with LogRows(config.database_url) as log:
        yield Reader(config, log)


def test_damage_is_told_and_other_tables_are_read(config: PipelineConfig, reader: Reader) -> None:
    local = config.tables.child("events").local
    assert local is not None
    wanted, dice = reader.events(), random.Random(33)
    assert len(wanted) == 84
    file = max(local.rglob("part-*.parquet"), key=lambda found: found.stat().st_size)
    whole = file.read_bytes()
    torn = [whole[: dice.randrange(len(whole))] for _ in range(3)]
    for content in [*torn, *(flipped(whole, dice.randrange(8 * len(whole))) for _ in range(FLIPS))]:
        with changed(file, content):
            with pytest.raises(TableDamaged, match="table events"):
                reader.events()
            assert reader.activity() == [[6]]
    assert reader.events() == wanted

    commits = sorted(local.glob("_delta_log/*.json"))
    for commit in commits:
        whole = commit.read_bytes()
        bits = [dice.randrange(8 * len(whole)) for _ in range(FLIPS)]
        for content in [whole[: len(whole) // 2], *(flipped(whole, bit) for bit in bits)]:
            with changed(commit, content):
                try:
                    assert reader.events() == wanted
                except TableDamaged as error:
                    assert "table events" in str(error)
                assert reader.activity() == [[6]]
