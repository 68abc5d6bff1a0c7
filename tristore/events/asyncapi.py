"""The bus as an AsyncAPI 3 document, made from the catalogue and the schemas registered since."""

from collections.abc import Iterable
from typing import Any

from psycopg.rows import class_row

from tristore import __version__
from tristore.db.pool import Connection
from tristore.db.queries import load
from tristore.events.catalogue import CatalogueEntry, entries, latest
from tristore.events.envelope import MAX_METADATA_BYTES, MAX_PAYLOAD_BYTES
from tristore.events.queue import CHANNEL

Document = dict[str, Any]
_sql = load("tristore.events", "asyncapi.sql")

_INFO = (
    "Every accepted event is stored once in an ordered log and sent to live readers. "
    f"Payloads hold at most {MAX_PAYLOAD_BYTES} bytes, metadata {MAX_METADATA_BYTES}."
)


def catalogue() -> list[CatalogueEntry]:
    """The newest version of each type that ships with the package."""
    return [entry for entry in entries() if entry is latest(entry.type)]


async def registered(conn: Connection) -> list[CatalogueEntry]:
    cursor = conn.cursor(row_factory=class_row(CatalogueEntry))
    return await (await cursor.execute(_sql.registered)).fetchall()


def document(found: Iterable[CatalogueEntry], queue: str) -> Document:
    types = {entry.type: entry for entry in found}
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Tristore events", "version": __version__, "description": _INFO},
        "defaultContentType": "application/json",
        "servers": _servers(),
        "channels": {
            "live": _live_channel(types),
            "ingress": _ingress_channel(types, queue),
            **{name: _type_channel(name) for name in types},
        },
        "operations": _operations(types),
        "components": {
            "messages": {name: _message(entry) for name, entry in types.items()},
            "schemas": {name: entry.schema for name, entry in types.items()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _servers() -> Document:
    return {
        "api": {
            "host": "127.0.0.1:4400",
            "protocol": "ws",
            "description": "The API; browsers open a socket with a ticket or a session cookie.",
            "security": [{"$ref": "#/components/securitySchemes/bearer"}],
        },
        "redis": {
            "host": "127.0.0.1:6379",
            "protocol": "redis",
            "description": "Redis: BullMQ for publishing, pub/sub for listening.",
        },
    }


def _live_channel(types: Iterable[str]) -> Document:
    return {
        "address": "/ws",
        "title": "The log as it grows",
        "description": "`type` filters and `since` resumes. Each message is a frame "
        '`{"kind":"event","sequence":n,"event":…}` or `{"kind":"position","sequence":n}`.',
        "servers": [{"$ref": "#/servers/api"}],
        "messages": {name: _message_ref(name) for name in types},
    }


def _ingress_channel(types: Iterable[str], queue: str) -> Document:
    return {
        "address": f"bull:{queue}",
        "title": "Publishing through BullMQ",
        "description": "Job `event` with an envelope as data, or job `events` with "
        '`{"events":[…]}`. Other types may be published freely.',
        "servers": [{"$ref": "#/servers/redis"}],
        "messages": {name: _message_ref(name) for name in types},
    }


def _type_channel(name: str) -> Document:
    return {
        "address": CHANNEL + name,
        "description": "Redis pub/sub: tells who listens now, keeps nothing for who does not.",
        "servers": [{"$ref": "#/servers/redis"}],
        "messages": {name: _message_ref(name)},
    }


def _operations(types: Iterable[str]) -> Document:
    each = {name: _operation("send", name, [name]) for name in types}
    return {
        "readLog": _operation("send", "live", types),
        "publish": _operation("receive", "ingress", types),
        **each,
    }


def _operation(action: str, channel: str, types: Iterable[str]) -> Document:
    refs = [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in types]
    return {"action": action, "channel": {"$ref": f"#/channels/{channel}"}, "messages": refs}


def _message_ref(name: str) -> Document:
    return {"$ref": f"#/components/messages/{name}"}


def _message(entry: CatalogueEntry) -> Document:
    return {
        "name": entry.type,
        "title": entry.schema.get("title", entry.type),
        "summary": entry.schema.get("description", ""),
        "contentType": "application/json",
        "payload": _envelope(entry),
        "correlationId": {"location": "$message.payload#/correlationId"},
    }


def _envelope(entry: CatalogueEntry) -> Document:
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    return {
        "type": "object",
        "required": ["id", "type", "source", "occurredAt", "payload"],
        "additionalProperties": False,
        "properties": {
            "id": {**text, "maxLength": 128},
            "type": {"const": entry.type},
            "source": text,
            "occurredAt": {"type": "string", "format": "date-time"},
            "payload": {"$ref": f"#/components/schemas/{entry.type}"},
            "correlationId": {"type": ["string", "null"], "maxLength": 200},
            "ttl": {"type": ["integer", "null"], "minimum": 1},
            "metadata": {"type": ["object", "null"]},
            "schemaVersion": {"type": ["integer", "null"], "const": entry.version},
        },
    }
