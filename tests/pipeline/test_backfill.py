"""What a table lacks comes back once, and a table made anew holds the rows it held."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.pipeline import log_rows
from tests.pipeline.filestore_story import story
from tests.pipeline.table_rows import LOGGED, lose, rows
from tristore import failpoints
from tristore.errors import InvalidRequest
from tristore.pipeline import jobs
from tristore.pipeline.backfill import backfill
from tristore.pipeline.catalogue import find
from tristore.pipeline.closing import close_due
from tristore.pipeline.history import Range
from tristore.pipeline.periods import Period
from tristore.pipeline.rebuild import rebuild
from tristore.pipeline.retention import retain
from tristore.pipeline.session import PipelineConfig
from tristore.pipeline.tools import Tools
from tristore.timestore.retention import Retention

FORGET = "DELETE FROM bus.workflow_events WHERE ingress_sequence < 6"


@pytest.mark.timeout(600)
def test_backfill_and_rebuild_give_back_exactly_what_was_there(
    spark: SparkSession, config: PipelineConfig
) -> None:
    tools = Tools(spark, config)
    story(config.database_url)
    log_rows.append(config.database_url, 20)
    story(config.database_url)
    jobs.run_available(config, spark)
    before = {slug: rows(tools, slug) for slug in LOGGED}
    assert [len(before[slug]) for slug in LOGGED] == [28, 12, 4]

    close_due(tools, find(config, "filestore_growth"), Period.of("2026-12").start)
    lose(tools, "events")
    for point in ("after_write", "after_delta_commit"):
        failpoints.arm(f"backfill.{point}:raise:1")
        with pytest.raises(RuntimeError):
            backfill(tools, find(config, "events"), Range(through=99))
    failpoints.arm("")
    assert backfill(tools, find(config, "events"), Range(after=3, through=99)) == 0
    backfill(tools, find(config, "filestore_growth"), Range(after=0, through=3))
    assert rows(tools, "filestore_growth") == before["filestore_growth"], "not only events 1 to 3"
    for slug in ("filestore_activity", "filestore_growth"):
        lose(tools, slug)
        assert rows(tools, slug) != before[slug]
        backfill(tools, find(config, slug), Range(start=Period.of("2026-03").start))
    assert {slug: rows(tools, slug) for slug in LOGGED} == before

    log_rows.execute(config.database_url, FORGET)
    log_rows.execute(config.database_url, "UPDATE bus.ingress_head SET earliest = 6")
    for slug in LOGGED:
        rebuild(tools, find(config, slug))
    assert {slug: rows(tools, slug) for slug in LOGGED} == before
    assert jobs.status(config)["throughSequence"] == 28

    lose(tools, "events")
    for slug in ("filestore_activity", "filestore_growth"):
        with pytest.raises(InvalidRequest, match=f"{slug} stays as it is: .* events 1 to 5"):
            rebuild(tools, find(config, slug))
        assert rows(tools, slug) == before[slug]
    with pytest.raises(InvalidRequest, match="`events` has only 0 of them"):
        backfill(tools, find(config, "filestore_growth"), Range())
    assert rows(tools, "filestore_growth") == before["filestore_growth"]


def test_growth_is_kept_whatever_its_retention_says(config: PipelineConfig) -> None:
    growth = replace(find(config, "filestore_growth"), retention=Retention("1m"))
    tools = Tools(None, config)  # type: ignore[arg-type]
    assert retain(tools, growth, Period.of("2030-01").start) == []


def test_rows_of_users_are_not_the_logs_to_bring(config: PipelineConfig) -> None:
    own = replace(find(config, "events"), kind="ingest")
    with pytest.raises(InvalidRequest, match="not fed by the log"):
        backfill(Tools(None, config), own, Range())  # type: ignore[arg-type]
