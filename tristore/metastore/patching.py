"""Patches: JSON merge patch (RFC 7396) for metadata, and add, remove and set for tags."""

from dataclasses import dataclass
from typing import Any

from tristore.errors import InvalidRecord, Violation
from tristore.merge_patch import merged
from tristore.metastore.content import (
    FIELDS,
    Content,
    check_fields,
    normal_tags,
    owner_violations,
    tags_violations,
)

_TAG_FIELDS = ("add", "remove", "set")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Patch:
    """What is to change; `owner` may be the absent one, since null means none."""

    metadata: dict[str, Any]
    tags: dict[str, list[str]]
    owner: object = _ABSENT

    @classmethod
    def of(cls, given: Any) -> "Patch":
        found = check_fields(given, FIELDS)
        tags = found.get("tags", {})
        # A list says what the tags are to be, as it would in a merge patch.
        tags = {"set": tags} if isinstance(tags, list) else tags
        violations = _violations(found, tags)
        if violations:
            raise InvalidRecord(violations)
        return cls(found.get("metadata", {}), tags, found.get("owner", _ABSENT))

    def applied(self, before: Content) -> Content:
        owner = before.owner if self.owner is _ABSENT else self.owner
        return Content(
            merged(before.metadata, self.metadata),
            self._tags(before.tags),
            None if owner is None else str(owner),
        )

    def _tags(self, before: tuple[str, ...]) -> tuple[str, ...]:
        start = self.tags.get("set", before)
        kept = set(start) - set(self.tags.get("remove", ()))
        return normal_tags(kept | set(self.tags.get("add", ())))


def _violations(given: dict[str, Any], tags: Any) -> list[Violation]:
    found = owner_violations(given.get("owner"))
    if not isinstance(given.get("metadata", {}), dict):
        found.append(Violation("/metadata", "must be a JSON object: a merge patch (RFC 7396)"))
    if not isinstance(tags, dict):
        return [*found, Violation("/tags", 'must be {"add": […], "remove": […], "set": […]}')]
    for name, value in tags.items():
        if name in _TAG_FIELDS:
            found += tags_violations(value, f"/tags/{name}")
        else:
            found.append(Violation(f"/tags/{name}", "tags are patched by add, remove and set"))
    return found
