"""Dead letters: refused events, kept as they arrived with the reason."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.errors import InvalidEvent

_sql = load("tristore.events", "deadletters.sql")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    refusal: InvalidEvent
    raw: bytes
    event_id: str | None
    type: str | None
    source: str | None

    @classmethod
    def of(cls, refusal: InvalidEvent, raw: bytes, value: Any) -> "DeadLetter":
        """Names the event by whatever its bytes allow."""
        fields = value if isinstance(value, dict) else {}
        return cls(
            refusal, raw, _text(fields, "id"), _text(fields, "type"), _text(fields, "source")
        )


async def add(conn: Connection, letters: Sequence[DeadLetter]) -> None:
    """Stores the letters; the same bytes twice in one call are one letter."""
    distinct = {(hashlib.sha256(x.raw).digest(), x.refusal.reason): x for x in letters}
    if not distinct:
        return
    rows = distinct.values()
    columns = {
        "event_id": [x.event_id for x in rows],
        "type": [x.type for x in rows],
        "source": [x.source for x in rows],
        "reason": [x.refusal.reason for x in rows],
        "errors": [_errors(x.refusal) for x in rows],
        "raw": [x.raw for x in rows],
        "raw_hash": [digest for digest, _ in distinct],
    }
    await conn.execute(_sql.add, columns)


def report(letters: Sequence[DeadLetter]) -> None:
    for letter in letters:
        _log.warning(
            "dead letter",
            extra={
                "event_id": letter.event_id,
                "type": letter.type,
                "source": letter.source,
                "reason": letter.refusal.reason,
                "violations": [v.as_json() for v in letter.refusal.violations[:5]],
            },
        )


def _errors(refusal: InvalidEvent) -> str:
    return orjson.dumps([v.as_json() for v in refusal.violations]).decode()


def _text(fields: dict[str, Any], name: str) -> str | None:
    # Cut, because a refused name may be megabytes; cleaned, because Postgres takes no NUL.
    value = fields.get(name)
    return value[:200].replace("\x00", "\ufffd") if isinstance(value, str) else None
