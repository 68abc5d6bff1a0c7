"""Rules as a request gives them, refused where they are malformed or dangerous."""

from typing import Any

from jsonschema_rs import ValidationError

from tristore.errors import InvalidQuery, InvalidRecord, InvalidSchema, Violation
from tristore.events.registry import pattern, schema_safety
from tristore.metastore import fields
from tristore.metastore.content import check_fields, normal_tags, tags_violations
from tristore.metastore.namespaces import Wanted
from tristore.metastore.rules import key_matcher

FIELDS = frozenset(("schema", "allowedTags", "requireOwner", "keyPattern", "indexes", "textFields"))
_MAX_PATTERN_STATES = schema_safety.MAX_PATTERN_STATES


def wanted_rules(given: Any) -> Wanted:
    """What is left out is no rule."""
    found = check_fields(given, FIELDS)
    violations = [
        *_schema(found.get("schema")),
        *_tags(found.get("allowedTags")),
        *_owner(found.get("requireOwner", False)),
        *_pattern(found.get("keyPattern")),
        *_paths(found.get("indexes", []), "/indexes", 16),
        *_paths(found.get("textFields", []), "/textFields", 16),
    ]
    if violations:
        raise InvalidRecord(violations)
    tags = found.get("allowedTags")
    return Wanted(
        schema=found.get("schema"),
        allowed_tags=None if tags is None else normal_tags(tags),
        require_owner=found.get("requireOwner", False),
        key_pattern=found.get("keyPattern"),
        indexes=_written(found.get("indexes", [])),
        text_fields=_written(found.get("textFields", [])),
    )


def _schema(schema: object) -> list[Violation]:
    """By the same checks as the schemas of events."""
    if schema is None:
        return []
    try:
        schema_safety.check(schema)
    except InvalidSchema as refusal:
        return [Violation("/schema" + v.path, v.message) for v in refusal.violations]
    return []


def _tags(tags: object) -> list[Violation]:
    return [] if tags is None else tags_violations(tags, "/allowedTags")


def _owner(value: object) -> list[Violation]:
    return [] if isinstance(value, bool) else [Violation("/requireOwner", "must be true or false")]


def _pattern(text: object) -> list[Violation]:
    if text is None:
        return []
    if not isinstance(text, str) or not text:
        return [Violation("/keyPattern", "must be a regular expression, or null")]
    try:
        if pattern.states(text) > _MAX_PATTERN_STATES:
            return [Violation("/keyPattern", "repeats too much; use smaller counts")]
        key_matcher(text)
    except pattern.PatternUnread as error:
        return [Violation("/keyPattern", f"the pattern {error}")]
    except (ValidationError, ValueError) as error:
        return [Violation("/keyPattern", f"the pattern cannot be read: {str(error)[:200]}")]
    return []


def _paths(given: object, path: str, most: int) -> list[Violation]:
    if not isinstance(given, list):
        return [Violation(path, "must be a list of metadata paths, such as metadata.size")]
    if len(given) > most:
        return [Violation(path, f"has more than {most} paths")]
    return [found for place, one in enumerate(given) if (found := _path(one, f"{path}/{place}"))]


def _path(given: object, path: str) -> Violation | None:
    try:
        fields.metadata_path(given)
    except InvalidQuery as refusal:
        return Violation(path, str(refusal))
    return None


def _written(given: list[Any]) -> list[str]:
    """Each path once, in the one way it is written."""
    return list(dict.fromkeys(fields.written(fields.metadata_path(one)) for one in given))
