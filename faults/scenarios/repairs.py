"""Repairs of tables under faults: what a table lost comes back, and nothing comes twice."""

from faults import driver
from faults.driver import OFTEN
from faults.scenarios.pipelines import append, caught_up
from faults.scenarios.upkeeps import check_told
from faults.stage import Outcome, Stage
from tests.pipeline.tables import NAMES
from tristore.pipeline import requests, rewriting
from tristore.pipeline.contents import contents
from tristore.pipeline.locks import TableLocks
from tristore.pipeline.rewriting import Change
from tristore.pipeline.table import Table
from tristore.timestore.place import tables_place

POINTS = [
    f"{action}.{step}:exit9"
    for action in ("backfill", "rebuild")
    for step in ("after_write", "after_delta_commit")
]
_ASKED = "SELECT count(*) FROM timestore.pipeline_requests WHERE state IN ('queued', 'running')"


def killed(stage: Stage, point: str) -> Outcome:
    """F34: kill -9 of the driver at each step of a backfill or a rebuild of the three tables, one
    file of each of which is lost."""
    stage, given = driver.own(stage), {"rebuild": point.startswith("rebuild")}
    append(stage, stage.events)
    caught_up(stage, stage.faults)
    for _ in range(stage.faults):
        _lose(stage)
        # The driver gives up on what killed it three times: always one that has not.
        requests.ask(stage.url, "backfill", given)
        append(stage, 10)
        driver.kill_at(stage, f"{point}:{stage.chance.randint(1, len(NAMES))}", **OFTEN)
    last = requests.ask(stage.url, "backfill", given)
    outcome = caught_up(stage, stage.faults, _ASKED, **OFTEN)
    assert requests.state(stage.url, last).error is None
    check_told(stage)
    return outcome


def _lose(stage: Stage) -> None:
    for name in NAMES:
        partition = "month" if name == "filestore_growth" else "day"
        table = Table(name, tables_place(stage.settings).child(name), partition)
        found = contents(table.place.table(), partition)
        for files in list(found.values())[:1]:
            loss = Change("a loss", removed=files[:1], same_rows=False)
            assert rewriting.commit(table, TableLocks(), loss)
