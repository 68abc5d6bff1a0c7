"""Every error the platform raises on purpose.

TristoreError
├── Transient                  try again later; nothing is wrong with the request
│   ├── Unavailable            a server (Postgres, Redis) is away
│   └── OutcomeUnknown         a commit may or may not have happened; safe to retry by id
└── Terminal                   trying the same again gives the same answer
    ├── InvalidEvent           an event breaks the envelope or its schema; lists every violation
    ├── IdConflict             the event id is taken by a different body
    ├── Unauthenticated        no valid token
    ├── Forbidden              the token lacks the scope
    ├── NotFound
    ├── InvalidRequest         a parameter is malformed
    ├── TooLarge               a body is larger than the route takes
    ├── PositionGone           the asked position is older than what is kept
    ├── PositionAhead          the asked position has not been reached
    ├── CheckpointMismatch     a pipeline checkpoint does not belong to this log or table
    └── StartRefused           a server cannot be started safely; says what to do
"""

from dataclasses import dataclass


class TristoreError(Exception):
    pass


class Transient(TristoreError):
    pass


class Unavailable(Transient):
    pass


class OutcomeUnknown(Transient):
    pass


class Terminal(TristoreError):
    pass


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: a JSON pointer into the event, and what is wrong there."""

    path: str
    message: str

    def as_json(self) -> dict[str, str]:
        return {"path": self.path, "message": self.message}


class InvalidEvent(Terminal):
    """`reason` is the dead-letter reason; `violations` is never empty."""

    def __init__(self, reason: str, violations: list[Violation]) -> None:
        self.reason = reason
        self.violations = violations
        listed = "; ".join(f"{v.path or '/'}: {v.message}" for v in violations)
        super().__init__(f"{reason}: {listed}")


class IdConflict(Terminal):
    pass


class Unauthenticated(Terminal):
    pass


class Forbidden(Terminal):
    pass


class NotFound(Terminal):
    pass


class InvalidRequest(Terminal):
    pass


class TooLarge(Terminal):
    pass


class PositionGone(Terminal):
    def __init__(self, earliest: int) -> None:
        self.earliest = earliest
        super().__init__(f"that position is no longer kept; the earliest is {earliest}")


class PositionAhead(Terminal):
    def __init__(self, last: int) -> None:
        self.last = last
        super().__init__(f"that position has not been reached; the last is {last}")


class CheckpointMismatch(Terminal):
    pass


class StartRefused(Terminal):
    pass
