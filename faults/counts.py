"""How often each fault is injected before its row of the matrix counts as played in full."""

from faults.scenarios import SCENARIOS, Scenario
from faults.tally import Count

# Injected faults of a row, shared by its scenarios; where the matrix asks for each point, by each.
_PER_ROW = {"F1": 200, "F2": 500, "F4": 50, "F7": 200, "F9": 20, "F15": 20, "F22": 1000}
_PER_ROW |= {"F26": 1000, "F32": 500}
_PER_SCENARIO = {"F3": 50, "F5": 50, "F21": 500, "F31": 50}
# Of the driver the matrix names the points of a batch of the log alone.
_PER_POINT = {"F34": ("pipeline.", 50)}
# Where the matrix names no number.
_OTHERWISE = 20


def wanted(scenario: Scenario) -> int:
    if (row := _PER_ROW.get(scenario.fault)) is not None:
        alike = sum(each.fault == scenario.fault for each in SCENARIOS)
        return -(-row // alike)
    named, count = _PER_POINT.get(scenario.fault, ("", _OTHERWISE))
    if named in scenario.title:
        return _PER_SCENARIO.get(scenario.fault, count)
    return _OTHERWISE


def share(scenario: Scenario, count: Count) -> float:
    """How much of it is done; 1 is all. A run that found something counts, or it never ends."""
    return max(count.faults, len(count.violations)) / wanted(scenario)
