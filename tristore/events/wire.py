"""What a queue job carries: its events, each with the bytes it arrived as.

A job is read from the raw string in Redis, never from what the queue library parsed. One event
that cannot be read must not take its neighbours along, so a batch that fails as a whole is cut
into its elements without parsing them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tristore.errors import InvalidEvent, Violation
from tristore.events import strictjson

MAX_JOB_BYTES = 64 * 1024 * 1024

_HEAD = re.compile(rb'\s*\{\s*"events"\s*:\s*\[')
# Strings first, so that brackets inside them do not count; possessive, so that a missing quote
# costs one pass and not one per character.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{},]', re.DOTALL)


@dataclass(slots=True)
class Incoming:
    """One event of a job: a parsed value, or the reason why there is none. Not frozen: making a
    frozen one takes four times as long, and there is one for every event."""

    value: Any
    refusal: InvalidEvent | None
    _batch: "_Batch"
    index: int

    @property
    def raw(self) -> bytes:
        return self._batch.raw(self.index)


def events_job(bodies: Sequence[bytes]) -> bytes:
    """The data of a job `events`, from events that are JSON already."""
    return b'{"events":[' + b",".join(bodies) + b"]}"


def read(name: str, data: bytes) -> list[Incoming]:
    batch = _Batch(data, many=name == "events")
    if name not in ("event", "events"):
        return [Incoming(None, _refusal(f"unknown job name {name[:100]!r}"), batch, 0)]
    if len(data) > MAX_JOB_BYTES:
        return [Incoming(None, _refusal(f"job larger than {MAX_JOB_BYTES} bytes"), batch, 0)]
    try:
        values = batch.values()
    except strictjson.StrictJsonError:
        return [_incoming(batch, index) for index in range(len(batch.elements))]
    return [Incoming(value, None, batch, index) for index, value in enumerate(values)]


def _incoming(batch: "_Batch", index: int) -> Incoming:
    try:
        return Incoming(strictjson.loads(batch.raw(index)), None, batch, index)
    except strictjson.StrictJsonError as error:
        return Incoming(None, _refusal(str(error)), batch, index)


def _refusal(message: str) -> InvalidEvent:
    return InvalidEvent("envelope_invalid", [Violation("", message)])


class _Batch:
    def __init__(self, data: bytes, *, many: bool) -> None:
        self.data = data
        self.many = many

    def values(self) -> list[Any]:
        document = strictjson.loads(self.data, wrapped=2 if self.many else 0)
        if not self.many:
            return [document]
        if not isinstance(document, dict) or not isinstance(document.get("events"), list):
            raise strictjson.StrictJsonError('a job "events" carries {"events": [...]}')
        return list(document["events"])

    def raw(self, index: int) -> bytes:
        elements = self.elements
        return elements[index] if index < len(elements) else self.data

    @cached_property
    def elements(self) -> list[bytes]:
        head = _HEAD.match(self.data) if self.many else None
        return _cut(self.data, head.end()) if head else [self.data]


def _cut(data: bytes, start: int) -> list[bytes]:
    """The elements of the array that opens just before `start`, uninterpreted."""
    elements, depth = [], 0
    for token in _TOKEN.finditer(data, start):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
        elif mark != b"," or depth:
            continue
        if depth < 0 or (mark == b"," and not depth):
            elements.append(data[start : token.start()].strip())
            start = token.end()
        if depth < 0:
            return [e for e in elements if e]
    return [*elements, data[start:].strip()]
