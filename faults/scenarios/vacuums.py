"""Readers of a version that is vacuumed under them: all of its rows or an error, never a part."""

from collections.abc import Callable

import orjson
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from faults import driver
from faults.driver import OFTEN, START_SECONDS
from faults.scenarios.pipelines import caught_up, streaming
from faults.scenarios.upkeeps import STAY_OPEN
from faults.stage import Outcome, Stage
from tests.pipeline import log_rows
from tests.support.waiting import wait_until
from tristore.errors import TableDamaged
from tristore.pipeline import catalogue, requests
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.logrows import LogRows
from tristore.timestore.offer import Offers
from tristore.timestore.place import Place, tables_place
from tristore.timestore.query import Engine
from tristore.timestore.query_api import source
from tristore.timestore.requests import Query
from tristore.timestore.tail import LogTail

# Files are replaced as fast as they come, and what is replaced is wanted by nobody.
_RESTLESS = {**OFTEN, "TRISTORE_TIMESTORE__COMPACT_FILES": "2"}
_KEEP_NOTHING = {"dataset": "events", "keepHours": 0}
_SEEN = "SELECT count(*), count(DISTINCT id), max(ingress_sequence) FROM events"


def vacuumed(stage: Stage) -> Outcome:
    """F35: a reader opens a version, a vacuum takes its files, and then it reads; meanwhile
    questions are asked as a user asks them."""
    stage = driver.own(stage)
    place, lost = tables_place(stage.settings), 0
    log_rows.execute(stage.url, STAY_OPEN)
    with streaming(stage), driver.running(stage, **_RESTLESS), LogRows(stage.url) as log:
        engine = Engine(Offers(place, LogTail(log), 2))
        events = place.child("events")
        wait_until(lambda: _has_rows(events), START_SECONDS)
        config = PipelineConfig(stage.url, place.uri, stage.folder)
        question = Query([source(catalogue.find(config, "events"))], _SEEN)
        while lost < stage.faults:
            version = events.table()
            _vacuum(stage, lambda: engine.run(question).body)
            lost += _read_late(version)
    return caught_up(stage, lost)


def _has_rows(table: Place) -> bool:
    try:
        return len(table.table().file_uris()) > 0
    except DeltaError:
        return False


def _vacuum(stage: Stage, answer: Callable[[], bytes]) -> None:
    asked = requests.ask(stage.url, "vacuum", _KEEP_NOTHING)
    while (found := requests.state(stage.url, asked)).state in ("queued", "running"):
        try:
            ((rows, distinct, last),) = orjson.loads(answer())["rows"]
        except TableDamaged as vanished:
            assert "table events" in str(vanished)
        else:
            assert rows == distinct == last, (rows, distinct, last)
    assert found.state == "completed", found


def _read_late(version: DeltaTable) -> bool:
    """Whether the vacuum had taken anything from it."""
    rows = sum(pa.table(version.get_add_actions(flatten=True))["num_records"].to_pylist())
    try:
        assert version.to_pyarrow_table().num_rows == rows
    except (OSError, DeltaError) as vanished:
        assert ".parquet" in str(vanished)
        return True
    return False
