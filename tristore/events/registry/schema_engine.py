"""The JSON Schema engine, told to open no socket and no file and to match in linear time."""

from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions

from tristore.events.registry.schema_document import Node, rewritten

# A pattern is matched in time linear in the value, but the factor is the size of the pattern:
# without a limit `a{100000}` took 40 s for one value. `schema_safety` refuses far smaller ones.
_PATTERN_BYTES = 1024 * 1024
_QUICK = frozenset(("string", "integer", "boolean", "null"))


def compile_schema(schema: Node) -> Draft202012Validator:
    return Draft202012Validator(
        rewritten(schema, lambda keywords: _unique_guarded(_values_guarded(keywords))),
        validate_formats=True,
        offline=True,
        pattern_options=RegexOptions(size_limit=_PATTERN_BYTES),
    )


def quickly_unique(keywords: dict[str, Any]) -> bool:
    """Whether the items of a list, by their declared type, are quick to compare."""
    items = keywords.get("items")
    kinds = items.get("type") if isinstance(items, dict) else None
    named = kinds if isinstance(kinds, list) else [kinds]
    return bool(named) and all(isinstance(kind, str) and kind in _QUICK for kind in named)


def types_of_values(keywords: dict[str, Any]) -> list[str]:
    """The types its listed values have, where all are quick to compare and none is declared."""
    listed = keywords.get("enum", [keywords["const"]] if "const" in keywords else [])
    if "type" in keywords or not isinstance(listed, list):
        return []
    names = {str: "string", bool: "boolean", int: "integer", type(None): "null"}
    found = {names.get(type(value)) for value in listed}
    return [] if None in found else sorted(filter(None, found))


def _values_guarded(keywords: dict[str, Any]) -> dict[str, Any]:
    """A fraction is compared with each listed number exactly; a type turns it away at once."""
    found = types_of_values(keywords)
    return {**keywords, "type": found} if "integer" in found else keywords


def _unique_guarded(keywords: dict[str, Any]) -> dict[str, Any]:
    """The engine compares items before it looks at their type, and tiny fractions take 30 µs a
    pair. Behind an `if` only items of the declared type are compared; the meaning is the same."""
    if keywords.get("uniqueItems") is not True or not quickly_unique(keywords):
        return keywords
    typed = {"items": {"type": keywords["items"]["type"]}}
    guard = {"if": typed, "then": {"uniqueItems": True}}
    others = keywords.get("allOf", [])
    return {**keywords, "uniqueItems": False, "allOf": [*others, guard]}
