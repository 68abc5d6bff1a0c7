"""Events on their way from the command line: bounded batches, fixed ids, safe to try again."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from tristore.cli.client import Client
from tristore.errors import Terminal, Unavailable
from tristore.events.envelope import new_id, now_text

_BATCH_EVENTS = 500
_BATCH_BYTES = 700_000
_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    event: dict[str, Any]
    size: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    client: Client
    fields: dict[str, Any]

    def one(self, type: str, payload: str, event_id: str | None) -> dict[str, Any]:
        try:
            text = Path(payload[1:]).read_text("utf-8") if payload.startswith("@") else payload
            found = json.loads(text)
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"the payload is not readable as JSON: {error}") from None
        named = {"id": event_id} if event_id else {}
        event = self._complete({"type": type, "payload": found, **named})
        return {**self._send(event), "refused": []}

    def lines(self, stream: Iterable[bytes], type: str | None) -> dict[str, Any]:
        """Sends what can be sent; lines that are refused are told with their number."""
        results: list[Any] = []
        refused: list[dict[str, Any]] = []
        begun = time.monotonic()
        for batch in _batches(self._read(stream, type, refused)):
            self._send_batch(batch, results, refused)
            if time.monotonic() - begun > 1 and sys.stderr.isatty():
                print(f"\r{len(results)} sent", end="", file=sys.stderr)
        return {"results": results, "refused": sorted(refused, key=lambda item: item["line"])}

    def _read(
        self, stream: Iterable[bytes], type: str | None, refused: list[dict[str, Any]]
    ) -> Iterator[Line]:
        for number, text in enumerate(stream, 1):
            if not text.strip():
                continue
            try:
                found = json.loads(text)
                event = {"type": type, "payload": found} if type else dict(found)
            except (ValueError, TypeError) as error:
                refused.append({"line": number, "detail": f"not a JSON object: {error}"})
                continue
            yield Line(number, self._complete(event), len(text))

    def _complete(self, event: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in self.fields.items() if value is not None}
        return {"id": new_id(), "occurredAt": now_text(), **given, **event}

    def _send_batch(
        self, batch: list[Line], results: list[Any], refused: list[dict[str, Any]]
    ) -> None:
        """A batch is refused whole; halved, the guilty lines are found and the others go."""
        try:
            results += self._send([line.event for line in batch])["results"]
        except Terminal as refusal:
            if len(batch) == 1:
                refused.append({"line": batch[0].number, "detail": str(refusal)})
                return
            middle = len(batch) // 2
            self._send_batch(batch[:middle], results, refused)
            self._send_batch(batch[middle:], results, refused)

    def _send(self, events: dict[str, Any] | list[dict[str, Any]]) -> dict[str, Any]:
        for pause in _PAUSES:
            try:
                return dict(self.client.post("/v1/events", events))
            except Unavailable:
                time.sleep(pause)
        return dict(self.client.post("/v1/events", events))


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    batch: list[Line] = []
    size = 0
    for line in lines:
        if batch and (len(batch) >= _BATCH_EVENTS or size + line.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += line.size
    if batch:
        yield batch
