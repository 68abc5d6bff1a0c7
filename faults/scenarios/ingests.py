"""Rows of users under faults: what was acknowledged is in its table once, and nothing else is."""

from faults import driver
from faults.driver import START_SECONDS
from faults.sender import Sender
from faults.stage import Outcome, Stage
from tests.support.waiting import wait_until

POINTS = [
    f"staged.{step}:exit9:1" for step in ("before_write", "after_parquet", "after_delta_commit")
]
# Of the API: rows lie in their file, their number is about to be committed, and is.
STEPS = ["ingest.after_publish", "ingest.before_commit", "ingest.after_commit"]
_REQUESTS = 4
_WAITING = "SELECT count(*) FROM timestore.ingest_batches WHERE state = 'staged'"


def driver_killed(stage: Stage, point: str) -> Outcome:
    """F34: kill -9 of the driver at each step of bringing staged rows in; more come each time."""
    stage = driver.own(stage)
    with stage.serving() as api:
        sender = Sender(stage, api, _rows(stage))
        for fault in range(stage.faults):
            assert sender.send(api, _requests(fault))
            driver.kill_at(stage, point)
    return _brought(stage, sender)


def api_killed(stage: Stage, point: str) -> Outcome:
    """F34: kill -9 of the API before and after it numbers staged rows; all is sent again."""
    stage = driver.own(stage)
    with stage.serving() as api:
        sender = Sender(stage, api, _rows(stage))
    for fault in range(stage.faults):
        armed = f"{point}:exit9:{stage.chance.randint(1, _REQUESTS)}"
        with stage.serving(TRISTORE_FAILPOINTS=armed) as api:
            assert not sender.send(api, _requests(fault))
        with stage.serving() as api:
            assert sender.send(api, _requests(fault))
    return _brought(stage, sender)


def _brought(stage: Stage, sender: Sender) -> Outcome:
    with driver.running(stage):
        wait_until(lambda: stage.value(_WAITING) == 0, START_SECONDS)
    return Outcome(sender.check(), stage.faults)


def _rows(stage: Stage) -> int:
    return max(2, stage.events // (stage.faults * _REQUESTS))


def _requests(fault: int) -> range:
    return range(fault * _REQUESTS, (fault + 1) * _REQUESTS)
