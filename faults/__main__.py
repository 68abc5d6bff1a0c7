"""Plays the fault matrix again and again, goes on where it stopped, and writes faults/report.md."""

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from faults.counts import share
from faults.report import page
from faults.scenarios import SCENARIOS, Scenario
from faults.tally import Count, Tally
from faults.theatre import Theatre, open_theatre

STATE = Path(__file__).with_name("state.json")
REPORT = Path(__file__).with_name("report.md")


def main() -> int:
    given = _arguments()
    logging.disable(logging.WARNING)  # what our own pools say while a server is away
    chosen = [scenario for scenario in SCENARIOS if _is_wanted(scenario, given)]
    if not chosen:
        asked = " ".join(filter(None, (given.only, given.named)))
        print(f"no fault is named so: {asked}; F1 to F38 are", file=sys.stderr)
        return 2
    with open_theatre() as theatre:
        if given.again:
            return _play_again(theatre, chosen, given)
        tally = Tally.load(STATE, given.seed)
        _play(theatre, chosen, tally, given)
    print(page(tally))
    return 1 if tally.total().violations else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long to go on")
    parser.add_argument("--seed", type=int, help="another seed starts a new tally; default 1")
    parser.add_argument("--only", help="faults, comma separated: F5,F7")
    parser.add_argument("--named", default="", help="of these, those with this in their title")
    parser.add_argument("--full", action="store_true", help="stop at the counts of the matrix")
    parser.add_argument("--events", type=int, default=1000, help="events of a run, about")
    parser.add_argument("--faults", type=int, default=5, help="faults of a run, where it has many")
    parser.add_argument("--again", type=int, metavar="RUN", help="play this run of --only again")
    return parser.parse_args()


def _is_wanted(scenario: Scenario, given: argparse.Namespace) -> bool:
    wanted = given.only is None or scenario.fault in given.only.upper().split(",")
    return wanted and given.named in scenario.title


def _play(
    theatre: Theatre, chosen: Sequence[Scenario], tally: Tally, given: argparse.Namespace
) -> None:
    """The scenario with the fewest runs is next, so that a run that goes on stays even; or, for
    the full counts, the one that has done the smallest share, until all have done theirs."""

    def done(scenario: Scenario) -> float:
        count = tally.of(_name(scenario))
        return share(scenario, count) if given.full else count.runs

    deadline = time.monotonic() + given.minutes * 60
    while time.monotonic() < deadline:
        scenario = min(chosen, key=done)
        if given.full and done(scenario) >= 1:
            return
        count = tally.of(_name(scenario))
        count.runs += 1
        started = time.monotonic()
        _play_once(theatre, scenario, tally.seed, count, given)
        count.seconds += time.monotonic() - started
        tally.save(STATE)
        REPORT.write_text(page(tally), "utf-8")


def _play_once(
    theatre: Theatre, scenario: Scenario, seed: int, count: Count, given: argparse.Namespace
) -> bool:
    """False if a promise was broken, or could not be shown to hold."""
    words = f"{scenario.fault} {scenario.title}, run {count.runs}, seed {seed}"
    print(words, end=" ", flush=True)
    try:
        with theatre.stage(
            f"{seed}/{scenario.title}/{count.runs}", events=given.events, faults=given.faults
        ) as stage:
            outcome = scenario.play(stage)
    except Exception as error:
        traceback.print_exc()
        again = f"--seed {seed} --only {scenario.fault} --again {count.runs}"
        size = f"--events {given.events} --faults {given.faults}"
        told = f"{words}: {_first_line(error)}; `python -m faults {again} {size}`"
        count.violations.append(told)
        return False
    count.events += outcome.events
    count.faults += outcome.faults
    print(f"{outcome.events} events, {outcome.faults} faults: whole", flush=True)
    return True


def _play_again(theatre: Theatre, chosen: Sequence[Scenario], given: argparse.Namespace) -> int:
    """One run of each chosen scenario, with its old choices; the tally is left alone."""
    seed = 1 if given.seed is None else given.seed
    whole = [_play_once(theatre, each, seed, Count(runs=given.again), given) for each in chosen]
    return 0 if all(whole) else 1


def _name(scenario: Scenario) -> str:
    return f"{scenario.fault} {scenario.title}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__} {str(error)[:200]}".splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
