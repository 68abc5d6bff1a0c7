"""The upkeep of tables under faults: every row once, every closing and export told once."""

from faults import driver
from faults.driver import OFTEN
from faults.scenarios.pipelines import append, caught_up, streaming
from faults.stage import Outcome, Stage
from tests.pipeline import log_rows
from tristore.pipeline import exports

POINTS = [
    *(
        f"closing.{step}:exit9:1"
        for step in ("before_write", "after_write", "after_delta_commit", "after_postgres")
    ),
    *(f"exporting.{step}:exit9:1" for step in ("after_write", "after_rename", "after_postgres")),
]
CROWDED = [
    f"compaction.{step}:exit9:1" for step in ("before_write", "after_write", "after_delta_commit")
]
_OPEN = """
    SELECT (SELECT count(*) FROM timestore.partitions WHERE state = 'open')
        + (SELECT count(*) FROM timestore.exports WHERE state IN ('queued', 'running'))
        + (SELECT 3 - count(DISTINCT dataset) FROM timestore.partitions)
        + (SELECT last - coalesce(max(rows), 0) FROM bus.ingress_head LEFT JOIN (
            SELECT sum(rows) AS rows FROM timestore.partitions WHERE dataset = 'events'
        ) AS p ON true GROUP BY last)
"""
_TWICE = """
    SELECT count(*) - count(DISTINCT (told->>'dataset', told->>'partition', told->>'revision',
        told->>'exportId'))
    FROM (SELECT envelope::jsonb->>'type' AS type, envelope::jsonb->'payload' AS told
        FROM bus.outbox) AS o
    WHERE type IN ('timestore.partition.closed', 'timestore.dataset.exported')
"""
_CLOSED = "SELECT sum(revision) FROM timestore.partitions"
_TOLD = "SELECT count(*) FROM bus.outbox WHERE envelope::jsonb->>'type' = %s"
# Partitions that never close are merged while they are open.
STAY_OPEN = "UPDATE timestore.datasets SET lateness_seconds = 2000000000"


def killed(stage: Stage, point: str) -> Outcome:
    """F34: kill -9 of the driver at each step of a closing or an export; late rows in between."""
    stage = driver.own(stage)
    for number in range(stage.faults):
        append(stage, max(10, stage.events // stage.faults))
        exports.queue(stage.url, "events", "parquet", f"export-{number}", (None, None))
        driver.kill_at(stage, point, **OFTEN)
    outcome = caught_up(stage, stage.faults, _OPEN, **OFTEN)
    check_told(stage)
    assert stage.value(_TOLD, "timestore.partition.closed") > 0
    assert stage.value(_TOLD, "timestore.dataset.exported") == stage.faults
    return outcome


def crowded(stage: Stage, point: str) -> Outcome:
    """F34: kill -9 of the driver at each step of a compaction, while events stream."""
    stage, merging = driver.own(stage), {**OFTEN, "TRISTORE_TIMESTORE__COMPACT_FILES": "2"}
    log_rows.execute(stage.url, STAY_OPEN)
    for _ in range(stage.faults):
        with streaming(stage):
            driver.kill_at(stage, point, **merging)
    return caught_up(stage, stage.faults)


def check_told(stage: Stage) -> None:
    """Each revision of a partition and each export is told once."""
    assert stage.value(_TWICE) == 0
    closed = stage.value(_CLOSED) or 0
    assert stage.value(_TOLD, "timestore.partition.closed") == closed
