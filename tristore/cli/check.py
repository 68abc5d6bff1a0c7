"""A check of `tristore doctor`, and what it is made of."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tristore.config import Settings

OK, WARN, FAIL = "ok", "warn", "fail"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: str
    detail: str
    next_step: str | None = None

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        return {**found, "nextStep": found.pop("next_step")}


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined."""

    settings: Settings
    database_url: str
    redis_url: str
    folder: Path


def graded(name: str, state: str, detail: str, next_step: str) -> Check:
    return Check(name, state, detail, None if state == OK else next_step)
