"""The Spark driver under faults: at the end each event of the log is in every table once."""

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from faults import driver
from faults.driver import START_SECONDS
from faults.process import Process
from faults.stage import Outcome, Stage
from tests.pipeline import log_rows, soundness
from tests.pipeline.driver import gone, java_of
from tests.pipeline.filestore_story import story
from tests.support.waiting import wait_until
from tristore.timestore import progress
from tristore.timestore.place import tables_place

POINTS = [
    "pipeline.before_write:exit9:1",
    "pipeline.after_parquet:exit9:1",
    *(f"pipeline.after_delta_commit:exit9:{table}" for table in (1, 2, 3)),
    "pipeline.before_spark_commit:exit9:1",
]
_LAST = "SELECT last FROM bus.ingress_head"
_NOTHING = "SELECT 0"


def killed(stage: Stage, point: str) -> Outcome:
    """F34: kill -9 after the offsets, after the files, between and after the Delta commits."""
    stage, per_fault = driver.own(stage), max(10, stage.events // stage.faults)
    for _ in range(stage.faults):
        append(stage, per_fault)
        driver.kill_at(stage, point)
    return caught_up(stage, stage.faults)


def killed_by_chance(stage: Stage) -> Outcome:
    """F34: kill -9 of Python and Java at any moment, while events stream."""
    stage = driver.own(stage)
    with streaming(stage):
        for _ in range(stage.faults):
            begun = _through(stage)
            with driver.running(stage) as process:
                java = java_of(process.pid)
                wait_until(lambda begun=begun: _through(stage) > begun, START_SECONDS)
                threading.Event().wait(stage.chance.random() * 3)
                if stage.chance.random() < 0.5:
                    java.kill()
                process.kill()
            wait_until(lambda java=java: gone(java), 60)
    return caught_up(stage, stage.faults)


def two_at_once(stage: Stage) -> Outcome:
    """F35: two drivers on one checkpoint; one may give up, neither may write twice."""
    stage = driver.own(stage)
    with streaming(stage), driver.running(stage) as first, driver.running(stage) as second:
        reached = _through(stage)
        wait_until(lambda: _through(stage) > reached or _ended(first, second), START_SECONDS)
    return caught_up(stage, 2)


def checkpoint_lost(stage: Stage) -> Outcome:
    """F35: without its checkpoint a driver refuses the tables, which stay as they are."""
    stage = driver.own(stage)
    append(stage, stage.events)
    caught_up(stage, 1)
    checkpoint = stage.settings.data_dir.absolute() / "pipeline" / "checkpoint"
    kept = checkpoint.with_name("kept")
    for _ in range(stage.faults):
        checkpoint.rename(kept)
        with driver.running(stage) as process:
            wait_until(lambda process=process: process.poll() is not None, START_SECONDS)
            assert process.says("table events ends at sequence"), process.output()[-500:]
        shutil.rmtree(checkpoint)
        kept.rename(checkpoint)
        append(stage, 10)
    return caught_up(stage, stage.faults)


def caught_up(stage: Stage, faults: int, asked: str = _NOTHING, **settings: str) -> Outcome:
    """A driver that is left alone brings what lacks, and does all that `asked` counts."""
    last = int(stage.value(_LAST))
    with driver.running(stage, **settings):
        wait_until(lambda: _all_through(stage, last) and not stage.value(asked), START_SECONDS)
    soundness.check(stage.url, tables_place(stage.settings))
    return Outcome(last, faults)


@contextmanager
def streaming(stage: Stage) -> Iterator[None]:
    """Events that keep coming, as many as the run is worth, for the length of the block."""
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.1):
            append(stage, 20)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            yield
        finally:
            stop.set()
        writing.result()


def append(stage: Stage, count: int) -> None:
    log_rows.append(stage.url, count)
    story(stage.url)


def _through(stage: Stage) -> int:
    return int(progress.read(tables_place(stage.settings), "events")["throughSequence"])


def _all_through(stage: Stage, last: int) -> bool:
    fed = "SELECT count(DISTINCT dataset) = 3 FROM timestore.fed WHERE through = %s"
    return bool(stage.value(fed, last))


def _ended(*processes: Process) -> bool:
    return all(process.poll() is not None for process in processes)
