"""Every scenario, by the fault of the matrix that it plays."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from faults.scenarios import (
    batches,
    databases,
    filekills,
    files,
    ingests,
    letters,
    pipelines,
    poison,
    publishers,
    queues,
    readers,
    relays,
    repairs,
    retentions,
    syncs,
    tables,
    upkeeps,
    vacuums,
    workers,
)
from faults.stage import Outcome, Stage


@dataclass(frozen=True, slots=True)
class Scenario:
    fault: str
    title: str
    plot: Callable[[Stage], Outcome]

    def play(self, stage: Stage) -> Outcome:
        try:
            return self.plot(stage)
        except BaseException:
            print(stage.last_words(), file=sys.stderr)
            raise


def _at(fault: str, title: str, plot: Callable[..., Outcome], points: list[str]) -> list[Scenario]:
    return [Scenario(fault, f"{title} {p}", partial(plot, point=p)) for p in points]


SCENARIOS = [
    *_at(
        "F1",
        "publisher killed",
        publishers.killed_around_commit,
        ["before_commit", "after_commit"],
    ),
    Scenario("F1", "publisher killed by chance", publishers.killed_by_chance),
    Scenario("F2", "answer to COMMIT lost", publishers.answer_to_commit_lost),
    *_at("F3", "relay killed", relays.killed, relays.POINTS),
    Scenario("F4", "relay late, sending", relays.late_and_sending),
    Scenario("F4", "relay late, giving back", relays.late_and_giving_back),
    *_at("F5", "worker killed", workers.killed, workers.POINTS),
    Scenario("F6", "event that kills its worker", poison.fed),
    Scenario("F6", "workers killed by chance", poison.suspected),
    *_at("F7", "worker stopped", workers.stopped, workers.POINTS),
    Scenario("F8", "worker too busy for its locks", workers.busy),
    Scenario("F9", "Redis emptied", queues.emptied),
    Scenario("F10", "Redis away", queues.away),
    Scenario("F11", "Redis full", queues.full),
    Scenario("F12", "Redis may evict", queues.may_evict),
    Scenario("F14", "Redis stalls and hangs up", queues.stalled),
    Scenario("F15", "Postgres falls over", databases.fallen_over),
    Scenario("F17", "backends terminated", databases.backends_terminated),
    Scenario("F18", "stranger's open transaction", databases.held_by_a_stranger),
    Scenario("F19", "many writers, one tail", batches.written_by_many),
    *_at("F21", "sync killed", syncs.killed, syncs.POINTS),
    Scenario("F22", "readers come in a burst", readers.come_in_a_burst),
    Scenario("F24", "wake-ups lost", readers.hear_nothing),
    Scenario("F25", "file events shuffled, twice and late", syncs.shuffled),
    Scenario("F25", "file events while Redis comes and goes", syncs.redis_away),
    Scenario("F26", "same event from 16 publishers", publishers.same_event_at_once),
    Scenario("F28", "log cut under a reader", readers.sleep_through_retention),
    Scenario("F29", "no room for a file", files.no_room_for_a_file),
    Scenario("F29", "disk full at any call", files.full_at_any_call),
    *[
        Scenario("F31", f"{command} killed", partial(filekills.command_killed, command=command))
        for command in filekills.COMMANDS
    ],
    *[
        Scenario("F31", f"{command} killed", partial(filekills.worker_killed, command=command))
        for command in filekills.WORKERS
    ],
    Scenario("F32", "power cut", files.power_cut),
    Scenario("F33", "files rot", files.rotten),
    Scenario("F33", "tables rot", tables.rotten),
    *_at("F34", "driver killed", pipelines.killed, pipelines.POINTS),
    Scenario("F34", "driver killed by chance", pipelines.killed_by_chance),
    *_at("F34", "driver killed in its upkeep", upkeeps.killed, upkeeps.POINTS),
    *_at("F34", "driver killed in its upkeep", upkeeps.crowded, upkeeps.CROWDED),
    *_at("F34", "driver killed with staged rows", ingests.driver_killed, ingests.POINTS),
    *_at("F34", "API killed with staged rows", ingests.api_killed, ingests.STEPS),
    Scenario("F34", "driver killed in its retention", retentions.killed),
    *_at("F34", "driver killed in a repair", repairs.killed, repairs.POINTS),
    Scenario("F35", "two drivers at once", pipelines.two_at_once),
    Scenario("F35", "checkpoint lost", pipelines.checkpoint_lost),
    Scenario("F35", "tables vacuumed under a reader", vacuums.vacuumed),
    Scenario("F37", "bad events among good ones", batches.with_a_bad_one),
    Scenario("F38", "dead letters locked", letters.locked),
]
