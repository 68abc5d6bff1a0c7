"""A batch: what one transaction of the ingress worker settles."""

from dataclasses import dataclass, field

import orjson
import psycopg

from tristore.errors import InvalidEvent, Violation
from tristore.events.deadletters import DeadLetter
from tristore.events.envelope import Event
from tristore.events.outbox import Finished
from tristore.events.wire import Incoming


@dataclass(slots=True)  # not frozen, for speed: as in wire.py
class Candidate:
    """An event that passed every check and wants a place in the log.

    `token` names the claim of the outbox rows it came from; None if it came from elsewhere.
    """

    event: Event
    body_hash: bytes
    incoming: Incoming
    token: str | None

    def message(self) -> bytes:
        """The event for live listeners, from the value it came as: cheaper than from the model."""
        stamped = {"schemaVersion": v} if (v := self.event.schema_version) else {}
        made = {"id": self.event.id, "occurredAt": self.event.occurred_at}
        return orjson.dumps({**made, **self.incoming.value, **stamped}, option=orjson.OPT_UTC_Z)

    def conflict(self) -> DeadLetter:
        message = f"id {self.event.id} is taken by an event with another body"
        return self.refused(InvalidEvent("id_conflict", [Violation("/id", message)]))

    def refused(self, refusal: InvalidEvent) -> DeadLetter:
        return DeadLetter.of(refusal, self.incoming.raw, self.incoming.value)

    def finished(self) -> list[Finished]:
        return [Finished(self.event.id, self.body_hash, self.token)] if self.token else []


@dataclass(slots=True)
class Batch:
    """`revision` numbers the schemas it was examined by, if nobody has asked whether they hold."""

    candidates: list[Candidate] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)
    revision: int | None = None

    def __bool__(self) -> bool:
        return bool(self.candidates or self.letters or self.finished)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to do but to store events, each of them once."""
        return (
            not self.letters
            and not self.finished
            and not any(c.token for c in self.candidates)
            and len({c.event.id for c in self.candidates}) == len(self.candidates)
        )

    def rows(self) -> tuple[list[Event], list[bytes]]:
        """What the log stores."""
        return [c.event for c in self.candidates], [c.body_hash for c in self.candidates]

    def refuse(self, letter: DeadLetter, finished: list[Finished]) -> None:
        self.letters.append(letter)
        self.finished += finished

    def without(self, guilty: set[int], refusal: InvalidEvent) -> "Batch":
        """The same batch with some candidates (by their place) dead-lettered unprocessed."""
        rest = Batch(letters=list(self.letters), finished=list(self.finished))
        for place, candidate in enumerate(self.candidates):
            if place in guilty:
                rest.refuse(candidate.refused(refusal), candidate.finished())
            else:
                rest.candidates.append(candidate)
        return rest

    def halves(self, error: psycopg.DatabaseError) -> "list[Batch]":
        """Smaller batches, to find the one event Postgres refuses; alone, it is dead-lettered."""
        if not self.candidates:
            raise error
        if len(self.candidates) == 1:
            refusal = InvalidEvent("store_refused", [Violation("", type(error).__name__)])
            return [self.without({0}, refusal)]
        middle = len(self.candidates) // 2
        first = Batch(self.candidates[:middle], self.letters, self.finished, self.revision)
        return [first, Batch(self.candidates[middle:], revision=self.revision)]
