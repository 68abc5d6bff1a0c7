"""The tally of a long run: kept in a file after every play, so that the run can go on later."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Count:
    """What one scenario has come to so far."""

    runs: int = 0
    events: int = 0
    faults: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Tally:
    seed: int
    counts: dict[str, Count] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, seed: int | None) -> "Tally":
        """Goes on with the file, unless another seed is asked for."""
        try:
            found = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            return cls(1 if seed is None else seed)
        if seed not in (None, found["seed"]):
            return cls(int(str(seed)))
        counts = {name: Count(**count) for name, count in found["counts"].items()}
        return cls(found["seed"], counts)

    def save(self, path: Path) -> None:
        """Whole or not at all: a run may be killed, too."""
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(self), indent=1) + "\n", "utf-8")
        os.replace(fresh, path)

    def of(self, name: str) -> Count:
        return self.counts.setdefault(name, Count())

    def total(self) -> Count:
        counts = self.counts.values()
        return Count(
            runs=sum(count.runs for count in counts),
            events=sum(count.events for count in counts),
            faults=sum(count.faults for count in counts),
            seconds=sum(count.seconds for count in counts),
            violations=[violation for count in counts for violation in count.violations],
        )
