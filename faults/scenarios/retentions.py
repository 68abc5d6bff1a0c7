"""Retention under faults: what is too old goes once, the rest stays, and both are told."""

import httpx

from faults import driver
from faults.driver import OFTEN, START_SECONDS
from faults.scenarios.upkeeps import check_told
from faults.stage import Outcome, Stage
from tests.support.timestore import ALL, Set
from tests.support.waiting import wait_until
from tristore.timestore.place import tables_place

POINT = "retention.after_delta_commit:exit9:1"
_DAYS = {"old": "1999-02-03", "kept": "2010-01-05"}
_WAITING = "SELECT count(*) FROM timestore.ingest_batches WHERE state = 'staged'"
_STATES = "SELECT partition, state FROM timestore.partitions ORDER BY dataset, partition"
_FOLDERS = "SELECT folder FROM timestore.datasets WHERE kind <> 'log'"


def killed(stage: Stage) -> Outcome:
    """F34: kill -9 of the driver between the commit of a retention and its telling; each time it
    is another dataset's turn."""
    stage, rows = driver.own(stage), max(2, stage.events // (2 * stage.faults))
    with stage.serving() as api:
        with httpx.Client(base_url=api.url, headers=api.bearer(*ALL), timeout=60) as http:
            datasets = [Set.make(http) for _ in range(stage.faults)]
            for dataset in datasets:
                answer = dataset.rows(*(_row(day, n) for day in _DAYS for n in range(rows)))
                assert answer.status_code == 202, answer.text
            with driver.running(stage):
                wait_until(lambda: stage.value(_WAITING) == 0, START_SECONDS)
            for dataset in datasets:
                assert dataset.patch(retention={"maxAge": "9000d"}).status_code == 200
    for _ in range(stage.faults):
        driver.kill_at(stage, POINT, **OFTEN)
    wanted = [(_DAYS["old"], "removed"), (_DAYS["kept"], "closed")] * stage.faults
    with driver.running(stage, **OFTEN):
        wait_until(lambda: _states(stage) == wanted, START_SECONDS)
    for found in stage.rows(_FOLDERS):
        table = tables_place(stage.settings).child(found["folder"]).table().to_pyarrow_table()
        assert sorted(table["celsius"].to_pylist()) == list(range(rows))
        assert set(table["station"].to_pylist()) == {"kept"}
    check_told(stage)
    return Outcome(2 * rows * stage.faults, stage.faults)


def _row(day: str, number: int) -> dict[str, object]:
    return {"at": f"{_DAYS[day]}T12:00:00Z", "station": day, "celsius": float(number)}


def _states(stage: Stage) -> list[tuple[str, str]]:
    return [(row["partition"], row["state"]) for row in stage.rows(_STATES)]
