"""Tables on S3 are merged, mended, thinned and vacuumed as those in a folder are."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.filestore_story import story
from tests.pipeline.table_rows import LOGGED, lose, rows
from tests.support.s3 import S3Server
from tests.support.s3_tables import own_place
from tristore import failpoints
from tristore.pipeline import jobs, s3_folders
from tristore.pipeline.backfill import backfill
from tristore.pipeline.catalogue import find, table_of
from tristore.pipeline.compaction import compact
from tristore.pipeline.history import Range
from tristore.pipeline.periods import Period
from tristore.pipeline.rebuild import rebuild
from tristore.pipeline.retention import retain
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.tools import Tools
from tristore.pipeline.upkeep import Upkeep
from tristore.pipeline.vacuum import vacuum, vacuum_deleted
from tristore.timestore.retention import Retention


@pytest.fixture
def tools(
    spark: SparkSession,
    config: PipelineConfig,
    server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> Tools:
    """Three tables of several files each."""
    failpoints.arm("")
    place = own_place(server, monkeypatch)
    there = replace(
        config,
        tables_root=place.uri,
        tables_options=dict(place.options),
        upkeep=Upkeep(compact_files=2, keep_hours=0),
        max_events_per_trigger=300,
    )
    story(config.database_url)
    log_rows.append(config.database_url, 800)
    story(config.database_url)
    jobs.run_available(there, spark)
    return Tools(spark, there)


def files(tools: Tools, slug: str) -> int:
    return len(table_of(tools.config, find(tools.config, slug)).place.table().file_uris())


@pytest.mark.timeout(600)
def test_upkeep_keeps_every_row_and_removes_what_nobody_needs(tools: Tools) -> None:
    before = {slug: rows(tools, slug) for slug in LOGGED}
    assert files(tools, "events") > 2
    compact(tools, find(tools.config, "events"))
    assert files(tools, "events") == 2
    for slug in LOGGED:
        lose(tools, slug)
        assert rows(tools, slug) != before[slug]
        backfill(tools, find(tools.config, slug), Range())
    assert {slug: rows(tools, slug) for slug in LOGGED} == before
    for slug in LOGGED:
        rebuild(tools, find(tools.config, slug))
    assert {slug: rows(tools, slug) for slug in LOGGED} == before

    for slug in LOGGED:
        assert vacuum(tools, find(tools.config, slug)) > 0
    assert {slug: rows(tools, slug) for slug in LOGGED} == before
    stored = s3_folders.files(tools.config.tables, "events/data")
    assert len(stored) == files(tools, "events")

    thinned = replace(find(tools.config, "events"), retention=Retention("1d"))
    gone = retain(tools, thinned, Period.of("2026-03-03").start)
    assert gone == ["2026-03-01"]
    assert {row["day"] for row in rows(tools, "events")} == {"2026-03-02"}
    assert vacuum(tools, thinned) > 0
    assert vacuum_deleted(tools) == 0
