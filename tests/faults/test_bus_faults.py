"""Whatever dies, stalls or lies: each acknowledged event is stored once, in one order."""

import pytest

from faults.scenarios import SCENARIOS, Scenario
from faults.stage import Stage

# Played by tests of their own: the contract suite, test_sequence.py, test_line.py,
# test_sync_faults.py, tests/pipeline; those of files step by step by test_filestore_kills.py and
# the like.
ELSEWHERE = {"F17", "F19", "F21", "F25", "F29", "F31", "F32", "F33", "F34", "F35", "F37"}
HERE = [scenario for scenario in SCENARIOS if scenario.fault not in ELSEWHERE]


@pytest.mark.parametrize(
    "scenario", HERE, ids=lambda scenario: f"{scenario.fault}: {scenario.title}"
)
def test_every_event_is_accounted_for(scenario: Scenario, stage: Stage) -> None:
    """The ledger of each scenario is checked where it is played, in `faults/scenarios`."""
    outcome = scenario.play(stage)
    assert outcome.events > 0 and outcome.faults > 0
