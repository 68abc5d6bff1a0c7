"""The report of a long run, for people."""

from faults.tally import Count, Tally

HEAD = """# Faults

Written by `make faults`, seed {seed}. Each run commits events, breaks something on purpose, lets it
heal, and then compares the log with a ledger of what was acknowledged: each event once, in one
order without gaps, nothing else. `docs/faults.md` says what each fault is and how it was shown
that its check can fail.

| fault | runs | events | injected faults | violations | seconds |
|---|---:|---:|---:|---:|---:|
"""
CLEAN = """
No violation. 0 of n bounds the failure rate near 3/n, at 95 %: a fault that was injected n times
may still break its promise about 3 times in n. Read it row by row; it does not say "never".
"""


def page(tally: Tally) -> str:
    total = tally.total()
    lines = [_row(name, count) for name, count in tally.counts.items() if count.runs]
    text = HEAD.format(seed=tally.seed) + "\n".join([*lines, _row("all", total)]) + "\n"
    if total.violations:
        found = "\n".join(f"- {violation}" for violation in total.violations)
        return f"{text}\nViolations, each with the words that play it again:\n\n{found}\n"
    return text + (CLEAN if total.faults else "")


def _row(name: str, count: Count) -> str:
    figures = [count.runs, count.events, count.faults, len(count.violations), round(count.seconds)]
    return f"| {name} | " + " | ".join(f"{figure:,}" for figure in figures) + " |"
