"""What a request says a record is to hold: metadata, tags and owner, within their bounds."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import orjson

from tristore.errors import InvalidRecord, Violation
from tristore.metastore.model import Metadata
from tristore.metastore.names import has_control

MAX_TAGS = 500
MAX_TAG = 128
# Tags go into every event, which holds 256 KiB.
MAX_TAGS_BYTES = 64 * 1024
MAX_OWNER = 200
MAX_DEPTH = 64

FIELDS = frozenset(("metadata", "tags", "owner"))
_KEPT = frozenset(
    ("version", "createdAt", "updatedAt", "createdBy", "updatedBy", "deletedAt", "etag")
)


@dataclass(frozen=True, slots=True)
class Content:
    metadata: Metadata
    tags: tuple[str, ...]
    owner: str | None


def content_of(given: Mapping[str, Any]) -> Content:
    """What is left out is empty: the request says all that the record is to hold."""
    found = [
        *_object(given.get("metadata", {})),
        *tags_violations(given.get("tags", []), "/tags"),
        *owner_violations(given.get("owner")),
    ]
    if found:
        raise InvalidRecord(found)
    tags = normal_tags(given.get("tags", []))
    return Content(given.get("metadata", {}), tags, given.get("owner"))


def check_fields(given: Any, known: Set[str]) -> dict[str, Any]:
    """The request's object, if it has no field that nobody would read."""
    if not isinstance(given, dict):
        raise InvalidRecord([Violation("", "send a JSON object")])
    if not given.keys() <= known:
        unknown = sorted(given.keys() - known)[:20]
        raise InvalidRecord([Violation(f"/{name}", _unknown(name)) for name in unknown])
    return given


def _unknown(name: str) -> str:
    if name in _KEPT:
        return "is kept by the store; leave it out, and use If-Match to name a version"
    return "is no field of this request"


def size_violations(metadata: Metadata, most: int) -> list[Violation]:
    """Measured as it is stored; nesting as deep as events may."""
    found, text = [], orjson.dumps(metadata)
    if len(text) > most:
        found.append(Violation("/metadata", f"is {len(text)} bytes; the most is {most}"))
    # Counting brackets is far cheaper than walking the value, and settles nearly every record.
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH and _deeper(metadata, MAX_DEPTH):
        found.append(Violation("/metadata", f"is nested deeper than {MAX_DEPTH}"))
    return found


def _deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most + 1):
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return False
        level = [x for item in level for x in (item.values() if isinstance(item, dict) else item)]
    return True


def tags_violations(tags: object, path: str) -> list[Violation]:
    if not isinstance(tags, list):
        return [Violation(path, "must be a list of texts")]
    if len(tags) > MAX_TAGS:
        return [Violation(path, f"has {len(tags)} tags; the most is {MAX_TAGS}")]
    found = [
        Violation(f"{path}/{place}", f"a tag has 1 to {MAX_TAG} characters, none of them control")
        for place, tag in enumerate(tags)
        if not isinstance(tag, str) or not 0 < len(tag) <= MAX_TAG or has_control(tag)
    ]
    if not found and len("".join(tags).encode()) > MAX_TAGS_BYTES:
        return [Violation(path, f"tags have at most {MAX_TAGS_BYTES} bytes together")]
    return found[:20]


def owner_violations(owner: object) -> list[Violation]:
    if owner is None or (
        isinstance(owner, str) and 0 < len(owner) <= MAX_OWNER and not has_control(owner)
    ):
        return []
    message = f"an owner has 1 to {MAX_OWNER} characters, none of them control; null means none"
    return [Violation("/owner", message)]


def normal_tags(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(tags)))


def _object(metadata: object) -> list[Violation]:
    if isinstance(metadata, dict):
        return []
    return [Violation("/metadata", "must be a JSON object")]
