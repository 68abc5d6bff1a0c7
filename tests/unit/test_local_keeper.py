"""The pause before a restart grows with every early death, and starts over after a calm life."""

from tristore.local.keeper import LONGEST_PAUSE, SETTLED, SHORTEST_PAUSE, next_pause


def test_early_deaths_double_the_pause_up_to_a_limit() -> None:
    pauses, pause = [], 0.0
    for _ in range(7):
        pause = next_pause(pause, lived=1)
        pauses.append(pause)
    assert pauses == [0.5, 1, 2, 4, 8, LONGEST_PAUSE, LONGEST_PAUSE]


def test_a_settled_life_resets_the_pause() -> None:
    assert next_pause(LONGEST_PAUSE, lived=SETTLED) == SHORTEST_PAUSE
