"""The pipeline's driver as scenarios run it: quick, on data of its own, killed where they say."""

from contextlib import AbstractContextManager

from faults.process import Process
from faults.stage import Stage
from tests.pipeline.driver import SHORT_LIVED, gone, java_of
from tests.support.waiting import wait_until

START_SECONDS = 600
QUICK = {"TRISTORE_TIMESTORE__TRIGGER_SECONDS": "0.2", "TRISTORE_SPARK_MASTER": "local[2]"}
QUICK |= SHORT_LIVED
# With upkeep as often as it can be.
OFTEN = {"TRISTORE_TIMESTORE__LIFECYCLE_SECONDS": "0.3"}


def own(stage: Stage) -> Stage:
    """With tables and a checkpoint that no other run has seen."""
    return stage.with_settings(data_dir=stage.folder / "data")


def running(stage: Stage, **settings: str) -> AbstractContextManager[Process]:
    return stage.part("pipeline", "run", **QUICK, **settings)


def kill_at(stage: Stage, point: str, **settings: str) -> None:
    """Runs it until it comes to the point; its Java goes with it."""
    with running(stage, TRISTORE_FAILPOINTS=point, **settings) as process:
        java = java_of(process.pid)
        wait_until(process.was_killed, START_SECONDS)
    wait_until(lambda: gone(java), 60)
