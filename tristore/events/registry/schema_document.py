"""A schema and its parts: where subschemas stand, and what a local `$ref` points at."""

from collections.abc import Callable, Iterator
from typing import Any, TypeGuard
from urllib.parse import unquote

Node = dict[str, Any] | bool

DRAFT = "https://json-schema.org/draft/2020-12/schema"

# Subschemas for the same value, and for values inside it.
SAME_LISTS = ("allOf", "anyOf", "oneOf")
SAME_SINGLE = ("not", "if", "then", "else")
SAME_MAPS = ("dependentSchemas",)
ARRAY_SINGLE = ("items", "contains", "unevaluatedItems")
OBJECT_SINGLE = ("additionalProperties", "unevaluatedProperties", "propertyNames")
DEFINITIONS = ("$defs", "definitions")
SINGLE = frozenset(SAME_SINGLE + ARRAY_SINGLE + OBJECT_SINGLE)
LISTS = frozenset((*SAME_LISTS, "prefixItems"))
MAPS = frozenset((*SAME_MAPS, *DEFINITIONS, "properties", "patternProperties"))
ANNOTATIONS = frozenset(DEFINITIONS) | frozenset(
    "title description default examples deprecated readOnly writeOnly $comment $schema "
    "contentEncoding contentMediaType contentSchema".split()
)


def is_node(value: object) -> TypeGuard[Node]:
    return isinstance(value, dict | bool)


def subschemas(node: Node) -> Iterator[tuple[str, Node]]:
    """Every direct subschema with its JSON pointer below the node."""
    if isinstance(node, bool):
        return
    for keyword, value in node.items():
        if keyword in SINGLE and is_node(value):
            yield f"/{keyword}", value
        elif keyword in LISTS:
            yield from _listed(node, keyword)
        elif keyword in MAPS:
            yield from _mapped(node, keyword)


def rewritten(node: Node, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Node:
    """The schema with `change` applied to the keywords of every subschema, inside out."""
    if isinstance(node, bool):
        return node
    found = dict(node)
    for keyword, value in node.items():
        if keyword in SINGLE:
            found[keyword] = _changed(value, change)
        elif keyword in LISTS and isinstance(value, list):
            found[keyword] = [_changed(sub, change) for sub in value]
        elif keyword in MAPS and isinstance(value, dict):
            found[keyword] = {name: _changed(sub, change) for name, sub in value.items()}
    return change(found)


def _changed(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    # What is no schema stays, so that the engine can say so.
    return rewritten(value, change) if is_node(value) else value


def listed(node: dict[str, Any], keyword: str) -> list[Node]:
    return [sub for _, sub in _listed(node, keyword)]


def mapped(node: dict[str, Any], keyword: str) -> dict[str, Node]:
    found = node.get(keyword)
    return {k: v for k, v in found.items() if is_node(v)} if isinstance(found, dict) else {}


def resolve(root: Node, ref: object) -> Node | None:
    """What a `#` or `#/…` reference points at; None when it points at no part of the schema."""
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        return None
    at: Any = root
    for step in unquote(ref[1:]).split("/")[1:]:
        at = _inside(at, step.replace("~1", "/").replace("~0", "~"))
    return at if is_node(at) else None


def pointer(*steps: object) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def _inside(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    if isinstance(value, list) and step.isascii() and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return None


def _listed(node: dict[str, Any], keyword: str) -> Iterator[tuple[str, Node]]:
    found = node.get(keyword)
    for index, sub in enumerate(found if isinstance(found, list) else []):
        if is_node(sub):
            yield pointer(keyword, index), sub


def _mapped(node: dict[str, Any], keyword: str) -> Iterator[tuple[str, Node]]:
    for name, sub in mapped(node, keyword).items():
        yield pointer(keyword, name), sub
