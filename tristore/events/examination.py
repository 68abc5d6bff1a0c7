"""Examination: the checks an event passes before it may enter the log; no input or output."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tristore import failpoints
from tristore.errors import InvalidEvent, Violation
from tristore.events import suspects, wire
from tristore.events.batch import Batch, Candidate
from tristore.events.deadletters import DeadLetter
from tristore.events.envelope import Event, time_text
from tristore.events.outbox import Finished
from tristore.events.plain_event import latest, plain_event
from tristore.events.rawjob import RawJob
from tristore.events.registry.registry import Registry

_STEP = 100
# The relay names its jobs `<claim token>.<number>`.
_RELAY_JOB = re.compile(r"([0-9a-f]{32})\.\d+")


class Examination:
    """Reads and checks the events of jobs; what fails is already a dead letter in its batch."""

    def __init__(self, registry: Registry) -> None:
        self.batch = Batch()
        self._registry = registry
        self._now = datetime.now(UTC)
        self._latest = latest()

    def of(self, jobs: Iterable[RawJob]) -> Iterator[None]:
        """Works in steps of about a millisecond, so that other tasks can have their turn."""
        done = 0
        for job in jobs:
            token = relay_token(job)
            for incoming in wire.read(job.name, job.data):
                self.add_one(job, incoming, token)
                done += 1
                if done % _STEP == 0:
                    yield

    def add_one(self, job: RawJob, incoming: wire.Incoming, token: str | None) -> None:
        event: Event | None = None
        try:
            if incoming.refusal:
                raise incoming.refusal
            event = self._event(_completed(incoming.value, job, incoming.index))
            self._judge(event, incoming, token)
        except InvalidEvent as refusal:
            self._refuse(refusal, incoming, event, token)

    def repeat(self, candidates: Iterable[Candidate]) -> None:
        """For events that passed by other schemas, with the version they came with."""
        for candidate in candidates:
            named = {"schema_version": candidate.incoming.value.get("schemaVersion")}
            event = candidate.event.model_copy(update=named)
            try:
                self._judge(event, candidate.incoming, candidate.token)
            except InvalidEvent as refusal:
                self._refuse(refusal, candidate.incoming, event, candidate.token)

    def _judge(self, event: Event, incoming: wire.Incoming, token: str | None) -> None:
        if failpoints.armed():
            failpoints.failpoint(f"ingress.event.{event.type}")
        checked = self._registry.check(event)
        if event.ttl and event.expired(self._now):
            message = f"older than its ttl of {event.ttl} ms"
            raise InvalidEvent("expired", [Violation("/ttl", message)])
        self.batch.candidates.append(Candidate(checked, event.body_hash(), incoming, token))

    def _refuse(
        self, refusal: InvalidEvent, incoming: wire.Incoming, event: Event | None, token: str | None
    ) -> None:
        letter = DeadLetter.of(refusal, incoming.raw, incoming.value)
        self.batch.refuse(letter, _finished(letter, event, token))

    def _event(self, value: Any) -> Event:
        quick = plain_event(value, self._latest) if type(value) is dict else None
        return quick or Event.parse(value)


def condemned(job: RawJob, incoming: wire.Incoming) -> Batch:
    """The event dead-lettered as it is, unread: reading it is what may kill."""
    batch = Batch()
    letter = DeadLetter.of(suspects.verdict(), incoming.raw, incoming.value)
    batch.refuse(letter, _finished(letter, None, relay_token(job)))
    return batch


def relay_token(job: RawJob) -> str | None:
    found = _RELAY_JOB.fullmatch(job.id)
    return found[1] if found else None


def _finished(letter: DeadLetter, event: Event | None, token: str | None) -> list[Finished]:
    if token is None or letter.event_id is None:
        return []
    return [Finished(letter.event_id, event.body_hash() if event else None, token)]


def _completed(value: Any, job: RawJob, index: int) -> Any:
    """Id and time for publishers that give none: the same whenever the job is delivered again."""
    if not isinstance(value, dict) or ("id" in value and "occurredAt" in value):
        return value
    stamp = datetime.fromtimestamp(job.timestamp_ms / 1000, UTC)
    name = f"tristore:{job.id}/{job.timestamp_ms}/{index}"
    return {"id": str(uuid5(NAMESPACE_URL, name)), "occurredAt": time_text(stamp), **value}
