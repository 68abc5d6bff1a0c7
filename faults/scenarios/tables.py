"""Tables that rot: a query gives the rows that were written, or says which table is damaged."""

from pathlib import Path

from faults import driver
from faults.driver import OFTEN
from faults.scenarios.pipelines import append, caught_up
from faults.stage import Outcome, Stage
from tests.pipeline.damage import Reader, changed, flipped
from tristore.errors import TableDamaged
from tristore.pipeline import requests
from tristore.pipeline.session import PipelineConfig
from tristore.timestore.logrows import LogRows
from tristore.timestore.place import tables_place

_FEWEST = 50
_ASKED = "SELECT count(*) FROM timestore.pipeline_requests WHERE state IN ('queued', 'running')"


def rotten(stage: Stage) -> Outcome:
    """F33: a bit flipped or the end cut off in one file after the other: Parquet, the entries and
    the checkpoint of the Delta log, and the sums beside them."""
    stage = driver.own(stage)
    append(stage, stage.events // 2)
    caught_up(stage, 1)
    requests.ask(stage.url, "vacuum", {})
    append(stage, stage.events // 2)
    outcome = caught_up(stage, max(stage.faults, _FEWEST), _ASKED, **OFTEN)
    place = tables_place(stage.settings)
    with LogRows(stage.url) as log:
        reader = Reader(PipelineConfig(stage.url, place.uri, stage.folder), log)
        files = _files(Path(place.uri, "events"))
        wanted, others = reader.events(), reader.activity()
        for number in range(outcome.faults):
            # Each kind in turn, for there are far more data files than others.
            file = stage.chance.choice(files[number % len(files)])
            with changed(file, _spoiled(stage, file.read_bytes())):
                _check(reader, wanted, others)
        assert reader.events() == wanted
    return outcome


def _files(table: Path) -> list[list[Path]]:
    log = table / "_delta_log"
    kinds = (table.glob("data/**/*.parquet"), log.glob("*.json"), log.glob("*.checkpoint.parquet"))
    found = [*(sorted(kind) for kind in kinds), [*log.glob("_last_checkpoint")]]
    found.append(sorted(table.glob("data/**/.*.crc")) + sorted(log.glob(".*.crc")))
    assert all(found), found
    return found


def _spoiled(stage: Stage, whole: bytes) -> bytes:
    place = stage.chance.randrange(len(whole))
    if stage.chance.random() < 0.2:
        return whole[:place]
    return flipped(whole, 8 * place + stage.chance.randrange(8))


def _check(reader: Reader, wanted: object, others: object) -> None:
    try:
        assert reader.events() == wanted
    except TableDamaged as damage:
        assert "table events" in str(damage)
    assert reader.activity() == others
