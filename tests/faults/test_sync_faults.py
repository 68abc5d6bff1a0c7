"""Whatever dies, comes late or twice: each node ends with exactly one true record."""

import pytest

from faults.scenarios import SCENARIOS, Scenario
from faults.stage import Stage

OF_THE_SYNC = [scenario for scenario in SCENARIOS if scenario.fault in ("F21", "F25")]


@pytest.mark.parametrize(
    "scenario", OF_THE_SYNC, ids=lambda scenario: f"{scenario.fault}: {scenario.title}"
)
def test_every_node_has_one_true_record(scenario: Scenario, stage: Stage) -> None:
    """The records are checked where each scenario is played, in `faults/scenarios/syncs.py`."""
    outcome = scenario.play(stage)
    assert outcome.events > 0 and outcome.faults > 0
