"""A flipped bit or a torn file of a table is noticed when read, and never makes other rows."""

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.damage import Reader, changed, flipped
from tests.pipeline.filestore_story import story
from tristore.errors import TableDamaged
from tristore.pipeline import jobs, log_checkpoints
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.logrows import LogRows

# Spark takes its time on a busy machine.
pytestmark = pytest.mark.timeout(400)
FLIPS = 12


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

    # A checkpoint stands for all of them: one bit of it may make files or rows vanish.
    log_checkpoints.make(config.tables.child("events"))
    (checkpoint,) = local.glob("_delta_log/*.checkpoint.parquet")
    assert reader.events() == wanted
    whole = checkpoint.read_bytes()
    bits = [dice.randrange(8 * len(whole)) for _ in range(FLIPS)]
    for content in [whole[: len(whole) // 2], b"", *(flipped(whole, bit) for bit in bits)]:
        with changed(checkpoint, content):
            with pytest.raises(TableDamaged, match="table events"):
                reader.events()
            assert reader.activity() == [[6]]
    hint = local / "_delta_log" / "_last_checkpoint"
    whole = hint.read_bytes()
    for bit in random.Random(33).sample(range(8 * len(whole)), FLIPS):
        with changed(hint, flipped(whole, bit)):
            try:
                assert reader.events() == wanted
            except TableDamaged as error:
                assert "table events" in str(error)
