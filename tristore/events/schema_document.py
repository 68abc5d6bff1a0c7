"""A schema and its parts: where subschemas stand, and what a local `$ref` points at."""

from collections.abc import Iterator
from typing import Any
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
ANNOTATIONS = frozenset(DEFINITIONS) | frozenset(
    "title description default examples deprecated readOnly writeOnly $comment $schema "
    "contentEncoding contentMediaType contentSchema".split()
)


def is_node(value: object) -> bool:
    return isinstance(value, dict | bool)


def subschemas(node: Node) -> Iterator[tuple[str, Node]]:
    """Every direct subschema with its JSON pointer below the node."""
    if isinstance(node, bool):
        return
    for keyword in SAME_SINGLE + ARRAY_SINGLE + OBJECT_SINGLE:
        if is_node(found := node.get(keyword)):
            yield f"/{keyword}", found
    for keyword in (*SAME_LISTS, "prefixItems"):
        yield from _listed(node, keyword)
    for keyword in (*SAME_MAPS, *DEFINITIONS, "properties", "patternProperties"):
        yield from _mapped(node, keyword)


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
