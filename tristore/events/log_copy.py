"""Rows of the log as Postgres' binary COPY takes them: half the server's work of an INSERT."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct

import orjson

from tristore.events.envelope import Event

COLUMNS = (
    "ingress_sequence, received_at, occurred_at, body_hash, id, type, source, payload,"
    " correlation_id, ttl_ms, metadata, schema_version"
)
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
# Each field is its length and its bytes; a length of -1 says NULL. First the number of fields.
_FIXED = Struct(">hiqiqiqi32s").pack
_LENGTH = Struct(">i").pack
_LONG = Struct(">iq").pack
_INTEGER = Struct(">ii").pack
_NULL = _LENGTH(-1)
_NO_EXTRAS = _NULL * 4
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIELDS = 12


def copied(rows: Iterable[tuple[int, Event, bytes]], received_at: datetime) -> bytes:
    """(sequence, event, body hash) of each row, ready to be sent."""
    received = (received_at - _EPOCH) // _MICROSECOND
    parts = [_HEAD]
    for sequence, event, body_hash in rows:
        occurred = (event.occurred_at - _EPOCH) // _MICROSECOND
        event_id, payload = event.id.encode(), orjson.dumps(event.payload)
        parts += (
            _FIXED(_FIELDS, 8, sequence, 8, received, 8, occurred, 32, body_hash),
            _LENGTH(len(event_id)),
            event_id,
            _kind(event.type, event.source),
            _LENGTH(len(payload) + 1),
            b"\x01",  # the version of the binary form of jsonb
            payload,
            _extras(event),
        )
    parts.append(_END)
    return b"".join(parts)


@lru_cache(maxsize=1024)
def _kind(type_: str, source: str) -> bytes:
    return _text(type_) + _text(source)


def _extras(event: Event) -> bytes:
    correlation_id, ttl, metadata = event.correlation_id, event.ttl, event.metadata
    version = event.schema_version
    if correlation_id is None and ttl is None and metadata is None and version is None:
        return _NO_EXTRAS
    return (
        (_NULL if correlation_id is None else _text(correlation_id))
        + (_NULL if ttl is None else _LONG(8, ttl))
        + (_NULL if metadata is None else _field(b"\x01" + orjson.dumps(metadata)))
        + (_NULL if version is None else _INTEGER(4, version))
    )


def _text(value: str) -> bytes:
    return _field(value.encode())


def _field(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value
