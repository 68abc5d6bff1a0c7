"""The upkeep of tables under faults: every row once, every closing and export told once."""

from faults.scenarios.pipelines import QUICK, START_SECONDS
from faults.stage import Outcome, Stage
from tests.pipeline import log_rows, soundness
from tests.pipeline.filestore_story import story
from tests.support.waiting import wait_until
from tristore.pipeline import exports
from tristore.timestore.place import tables_place

POINTS = [
    *(
        f"closing.{step}:exit9:1"
        for step in ("before_write", "after_write", "after_delta_commit", "after_postgres")
    ),
    *(f"exporting.{step}:exit9:1" for step in ("after_write", "after_rename", "after_postgres")),
]
OFTEN = {**QUICK, "TRISTORE_TIMESTORE__LIFECYCLE_SECONDS": "0.3"}
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
        told->>'exportId')) FROM (SELECT envelope::jsonb->'payload' AS told FROM bus.outbox) AS o
"""
_CLOSED = "SELECT sum(revision) FROM timestore.partitions"
_TOLD = "SELECT count(*) FROM bus.outbox WHERE envelope::jsonb->>'type' = %s"


def killed(stage: Stage, point: str) -> Outcome:
    """F34: kill -9 of the driver at each step of a closing or an export; late rows in between."""
    stage = stage.with_settings(data_dir=stage.folder / "data")
    for number in range(stage.faults):
        log_rows.append(stage.url, max(10, stage.events // stage.faults))
        story(stage.url)
        exports.queue(stage.url, "events", "parquet", f"export-{number}", (None, None))
        with stage.part("pipeline", "run", TRISTORE_FAILPOINTS=point, **OFTEN) as process:
            wait_until(process.was_killed, START_SECONDS)
    with stage.part("pipeline", "run", **OFTEN):
        wait_until(lambda: stage.value(_OPEN) == 0, START_SECONDS)
    soundness.check(stage.url, tables_place(stage.settings))
    assert stage.value(_TWICE) == 0
    assert stage.value(_TOLD, "timestore.partition.closed") == stage.value(_CLOSED) > 0
    assert stage.value(_TOLD, "timestore.dataset.exported") == stage.faults
    return Outcome(int(stage.value("SELECT last FROM bus.ingress_head")), stage.faults)
