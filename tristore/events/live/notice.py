"""The notice of an append: small events come with the wake-up, so that nobody need ask for them.

It is made by the statement that stores them and arrives after its commit, in the order of commits.
What a notice lacks is read from the log, which remains the truth: losing one costs a question.
"""

from datetime import datetime
from typing import Any

import orjson

from tristore.events.live.frame import Frame
from tristore.events.log import Head, Stored


def frames_after(head: Head, notice: str) -> list[Frame] | None:
    """The events told, if they are just those that follow the head; else None."""
    try:
        document = orjson.loads(notice)
        if document["epoch"] != head.epoch or document["rows"][0][0] != head.last + 1:
            return None
        return [Frame.of(_stored(*row)) for row in document["rows"]]
    except (ValueError, TypeError, KeyError, IndexError):
        return None  # another version's words


def _stored(sequence: int, id: str, type: str, source: str, *rest: Any) -> Stored:
    occurred_at, received_at, payload, correlation_id, ttl_ms, metadata, schema_version = rest
    return Stored(
        ingress_sequence=sequence,
        id=id,
        type=type,
        source=source,
        occurred_at=datetime.fromisoformat(occurred_at),
        received_at=datetime.fromisoformat(received_at),
        payload=_as_it_is(payload),
        correlation_id=correlation_id,
        ttl_ms=ttl_ms,
        metadata=None if metadata is None else _as_it_is(metadata),
        schema_version=schema_version,
    )


def _as_it_is(text: str) -> Any:
    """JSON that is only passed on is not parsed on the way."""
    return orjson.Fragment(text.encode())
