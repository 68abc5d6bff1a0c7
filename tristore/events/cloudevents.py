"""CloudEvents 1.0 in JSON, and the envelope: the same event in two shapes.

`docs/publishing.md` has the mapping as a table. What one shape has and the other has not travels
as extension attributes or in `metadata.cloudevents`, so that a round trip loses nothing.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from tristore.errors import InvalidEvent, Violation
from tristore.events import strictjson
from tristore.events.envelope import Event
from tristore.events.log import Stored

ONE = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
_VERSION = "1.0"
_SCHEMA = "urn:tristore:schema:"
_CARRIED = "cloudevents"
# Attribute -> field of the envelope, where only the name differs.
_NAMES = {
    "id": "id",
    "source": "source",
    "type": "type",
    "time": "occurredAt",
    "data": "payload",
    "correlationid": "correlationId",
}
_TRACE = ("traceparent", "tracestate")
_EXTENSION = re.compile(r"[a-z0-9]{1,64}")
_INT32 = range(-(2**31), 2**31)


def from_cloudevent(value: Any) -> dict[str, Any]:
    """The envelope a CloudEvent stands for; raises InvalidEvent with every violation."""
    if not isinstance(value, dict):
        raise _refusal([Violation("", "a CloudEvent is a JSON object")])
    given = {name: item for name, item in value.items() if item is not None}
    violations = _violations(given)
    if violations:
        raise _refusal(violations)
    envelope = {_NAMES[name]: given.pop(name) for name in list(given) if name in _NAMES}
    for name in ("specversion", "datacontenttype"):
        given.pop(name, None)
    envelope |= _numbers(given, f"{_SCHEMA}{envelope.get('type')}:")
    if metadata := _metadata(given):
        envelope["metadata"] = metadata
    return envelope


def to_cloudevent(event: Mapping[str, Any] | Event | Stored) -> dict[str, Any]:
    """The CloudEvent of an event, or of what its `to_json()` shows."""
    shown = event if isinstance(event, Mapping) else event.to_json()
    given = {name: value for name, value in shown.items() if value is not None}
    metadata = dict(given.get("metadata") or {})
    carried = metadata.pop(_CARRIED, None)
    made: dict[str, Any] = {"specversion": _VERSION, "datacontenttype": "application/json"}
    made |= _extensions(carried) if isinstance(carried, dict) else {}
    made |= {name: metadata.pop(name) for name in _TRACE if isinstance(metadata.get(name), str)}
    made |= {name: given[field] for name, field in _NAMES.items() if field in given}
    if "ttl" in given:
        made["ttl"] = given["ttl"] if given["ttl"] in _INT32 else str(given["ttl"])
    if "schemaVersion" in given:
        made["dataschema"] = f"{_SCHEMA}{given['type']}:{given['schemaVersion']}"
    if "ingressSequence" in given:
        made["sequence"] = str(given["ingressSequence"])
        made["recordedtime"] = given["receivedAt"]
    if metadata:
        made["metadata"] = orjson.dumps(metadata).decode()
    return made


def _violations(given: dict[str, Any]) -> list[Violation]:
    found = []
    if given.get("specversion") != _VERSION:
        found.append(Violation("/specversion", f"must be {_VERSION!r}"))
    if "data_base64" in given:
        found.append(Violation("/data_base64", "binary data is not taken; send a JSON object"))
    kind = str(given.get("datacontenttype", "application/json")).partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        found.append(Violation("/datacontenttype", "must be application/json"))
    for name, item in given.items():
        if name in (*_NAMES, "data_base64"):
            continue
        if not _EXTENSION.fullmatch(name):
            shown = json.dumps(name[:100])
            found.append(Violation("", f"{shown} is no attribute name: lower-case letters, digits"))
        elif isinstance(item, dict | list | float):
            found.append(Violation(f"/{name}", "an attribute is a string, an integer or a boolean"))
    return found


def _numbers(given: dict[str, Any], prefix: str) -> dict[str, Any]:
    """`ttl` and the schema's version, if they read as numbers; else the envelope refuses them."""
    found: dict[str, Any] = {}
    if "ttl" in given:
        found["ttl"] = _integer(given.pop("ttl"))
    schema = given.get("dataschema")
    if isinstance(schema, str) and schema.startswith(prefix):
        found["schemaVersion"] = _integer(schema.removeprefix(prefix))
        del given["dataschema"]
    return found


def _integer(value: Any) -> Any:
    digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20
    return int(value) if digits else value


def _metadata(given: dict[str, Any]) -> dict[str, Any]:
    """What the envelope has no field for."""
    text = given.pop("metadata", None)
    try:
        found = strictjson.loads(text.encode()) if isinstance(text, str) else {}
    except (strictjson.StrictJsonError, UnicodeEncodeError):
        found = None
    if not isinstance(found, dict):
        raise _refusal([Violation("/metadata", "must be the text of a JSON object")])
    found |= {name: given.pop(name) for name in _TRACE if name in given}
    return found | ({_CARRIED: given} if given else {})


def _extensions(carried: dict[str, Any]) -> dict[str, Any]:
    """Only what may stand in a CloudEvent: metadata is free, and may hold anything here."""
    return {
        name: value
        for name, value in carried.items()
        if _EXTENSION.fullmatch(name) and isinstance(value, str | int)
    }


def _refusal(violations: list[Violation]) -> InvalidEvent:
    return InvalidEvent("envelope_invalid", violations)
